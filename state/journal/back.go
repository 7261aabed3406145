package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Back gives the committed events before a sequence (0: all), the newest first, while the writer may be writing: as the
// journal was when it was called. With kinds it gives those of these types alone, and decodes no others. After an
// error nothing more comes.
//
// It reads no more than is asked for, and holds one block, or one line if that is longer. An event that lies in another
// segment than its sequence says is damage, and passed over as that.
func Back(dir string, before uint64, kinds ...string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		firsts, err := segments(dir)
		if err != nil {
			yield(Event{}, err)
			return
		}
		b := back{before: before, marks: marks(kinds), kinds: kinds}
		for _, first := range slices.Backward(firsts) {
			if b.before != 0 && first >= b.before {
				continue
			}
			more, err := b.segment(filepath.Join(dir, segmentName(first)), first, yield)
			if err != nil {
				yield(Event{}, fmt.Errorf("read journal backwards: %w", err))
			}
			if err != nil || !more {
				return
			}
			b.before = first
		}
	}
}

// back is how far Back has come.
type back struct {
	before uint64   // the next event's sequence is less; 0: whatever it is
	kinds  []string // what is asked for; nil: all
	marks  [][]byte // what a line of such a kind has in it
}

func (b *back) segment(path string, first uint64, yield func(Event, error) bool) (more bool, err error) {
	f, end, err := openCommitted(path)
	if f == nil {
		return true, err
	}
	defer f.Close()
	lines := backLines{file: f, end: end}
	for {
		line, err := lines.next()
		if err != nil || line == nil {
			return true, err
		}
		if e, ok := b.take(line); ok && e.Seq >= first {
			b.before = e.Seq
			if !yield(e, nil) {
				return false, nil
			}
		}
	}
}

// take decodes a line, if it may be asked for.
func (b *back) take(line []byte) (Event, bool) {
	if b.passes(seqOf(line)) || !marked(line, b.marks) {
		return Event{}, false
	}
	e, err := parse(line)
	return e, err == nil && !b.passes(e.Seq) && (b.kinds == nil || slices.Contains(b.kinds, e.Type))
}

func (b *back) passes(seq uint64) bool { return b.before != 0 && seq >= b.before }

// seqOf is the sequence with which a line begins, unchecked; 0 if it begins with none.
func seqOf(line []byte) uint64 {
	digits, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	end := bytes.IndexByte(digits, ',')
	if !ok || end < 0 || end > 20 {
		return 0
	}
	seq, err := strconv.ParseUint(string(digits[:end]), 10, 64)
	if err != nil {
		return 0
	}
	return seq
}

// marks are what lines of these kinds have in them. Others may have it in their data, too: decoding tells.
func marks(kinds []string) (all [][]byte) {
	for _, kind := range kinds {
		all = append(all, appendString([]byte(`"type":`), kind))
	}
	return all
}

func marked(line []byte, marks [][]byte) bool {
	return marks == nil || slices.ContainsFunc(marks, func(m []byte) bool { return bytes.Contains(line, m) })
}

// openCommitted opens a segment and finds where its last whole append ends. What lies before that is never changed:
// only what is behind may be cut, and other bytes written in its place, while somebody reads. The file is nil if there
// is none (any more).
func openCommitted(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	end, err := committed(f)
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, end, nil
}

func committed(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	lines := backLines{file: f, end: info.Size()}
	for {
		line, err := lines.next()
		if err != nil || line == nil {
			return 0, err
		}
		if !intact(line) {
			continue
		}
		if _, _, ok := commitOf(line); ok {
			return lines.end + int64(len(line)) + 1, nil
		}
	}
}

// backLines reads the lines of a file from its end. What stands behind the last newline is no line.
type backLines struct {
	file *os.File
	end  int64  // of the lines that are to come, in the file
	held []byte // the bytes before end, as far as they were read
}

// next returns the line before the last one, without its newline; nil when there is none. It is valid until the next
// call.
func (l *backLines) next() ([]byte, error) {
	for {
		if n := len(l.held); n > 0 {
			if l.held[n-1] != '\n' {
				l.drop()
				continue
			}
			begin := bytes.LastIndexByte(l.held[:n-1], '\n') + 1
			if begin > 0 || l.end == int64(n) {
				line := l.held[begin : n-1]
				l.held, l.end = l.held[:begin], l.end-int64(n-begin)
				return line, nil
			}
		}
		if l.end == 0 {
			return nil, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// drop passes over what follows the last newline that is held.
func (l *backLines) drop() {
	keep := bytes.LastIndexByte(l.held, '\n') + 1
	l.end -= int64(len(l.held) - keep)
	l.held = l.held[:keep]
}

// fill reads a block that ends where what is to come ends: of a line that was longer than the last block, twice as much. A
// file that was cut meanwhile ends where it ends.
func (l *backLines) fill() error {
	size := min(l.end, max(readSize, 2*int64(len(l.held))))
	if int64(cap(l.held)) < size {
		l.held = make([]byte, size)
	}
	l.held = l.held[:size]
	n, err := l.file.ReadAt(l.held, l.end-size)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	l.end -= size - int64(n)
	l.held = l.held[:n]
	return nil
}
