package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// readSize is how much is read from a segment at once, in bytes.
const readSize = 256 << 10

// Reader reads the journal in dir from behind a sequence, whole appends only, while its writer may be
// writing. It needs no lock and is used by one goroutine.
type Reader struct {
	dir     string
	after   uint64
	segment uint64 // first sequence of the open file; 0: none is open
	file    *os.File
	offset  int64  // of pending[0] in the file
	pending []byte // read, and not yet closed by a commit
	ready   []Event
	damaged int
	suspect int64 // end of the line that looked damaged and was read anew, in the file; 0: none
}

// NewReader returns a Reader of the events whose sequence is greater than after. A journal that is not
// there yet is an empty one.
func NewReader(dir string, after uint64) *Reader { return &Reader{dir: dir, after: after} }

// Close releases the open segment.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// Damaged is the number of damaged lines that were passed over.
func (r *Reader) Damaged() int { return r.damaged }

// Next returns the events of the next appends, or none when there is nothing more by now: ask again.
func (r *Reader) Next() ([]Event, error) {
	for {
		if len(r.ready) > 0 {
			events := r.ready
			r.ready = nil
			return events, nil
		}
		more, err := r.fill()
		if err != nil || !more {
			return nil, err
		}
	}
}

// fill reads on and reports whether anything came of it.
func (r *Reader) fill() (bool, error) {
	if r.file == nil {
		if opened, err := r.open(); err != nil || !opened {
			return false, err
		}
	}
	have := len(r.pending)
	r.pending = append(r.pending, make([]byte, readSize)...)
	n, err := r.file.ReadAt(r.pending[have:], r.offset+int64(have))
	r.pending = r.pending[:have+n]
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read journal: %w", err)
	}
	if n == 0 {
		return r.advance()
	}
	r.deliver()
	return true, nil
}

// open opens the segment in which the sequence behind after lies, or will lie.
func (r *Reader) open() (bool, error) {
	firsts, err := segments(r.dir)
	if err != nil || len(firsts) == 0 {
		return false, err
	}
	choice := firsts[0]
	for _, first := range firsts {
		if first <= r.after+1 {
			choice = first
		}
	}
	return r.enter(choice)
}

func (r *Reader) enter(first uint64) (bool, error) {
	f, err := os.Open(filepath.Join(r.dir, segmentName(first)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open journal: %w", err)
	}
	begin := int64(0)
	if first <= r.after {
		if begin, err = behind(f, r.after); err != nil {
			_ = f.Close()
			return false, fmt.Errorf("read journal: %w", err)
		}
	}
	r.Close()
	r.file, r.segment, r.offset, r.suspect, r.pending = f, first, begin, 0, r.pending[:0]
	return true, nil
}

// behind is where a segment's lines with greater sequences begin, or some lines before that: so that what was read
// already is not decoded again. What is not committed may yet be replaced, and is none of it.
func behind(f *os.File, after uint64) (int64, error) {
	end, err := committed(f)
	lines := backLines{file: f, end: end}
	for err == nil {
		end = lines.end
		var line []byte
		if line, err = lines.next(); line == nil {
			return 0, err
		}
		if seq := seqOf(line); seq != 0 && seq <= after && intact(line) {
			return end, nil
		}
	}
	return 0, err
}

// advance goes on to the next segment if there is one. Its being there proves that this one is finished,
// but not that we have read it to the end: one more look comes first. What is pending at the end is torn.
func (r *Reader) advance() (bool, error) {
	firsts, err := segments(r.dir)
	if err != nil {
		return false, err
	}
	for _, first := range firsts {
		if first <= r.segment {
			continue
		}
		if info, err := r.file.Stat(); err == nil && info.Size() > r.offset+int64(len(r.pending)) {
			return true, nil
		}
		return r.enter(first)
	}
	r.reread()
	return false, nil
}

// reread forgets a torn tail when the writer has cut it: the file is then shorter than what was read, or
// holds other bytes there, so the tail is always read anew.
func (r *Reader) reread() { r.pending = r.pending[:0] }

// deliver takes the whole appends from what is pending.
func (r *Reader) deliver() {
	var batch []Event
	done := 0
	for at := 0; ; {
		n := bytes.IndexByte(r.pending[at:], '\n')
		if n < 0 {
			break
		}
		e, err := parse(r.pending[at : at+n])
		at += n + 1
		if err != nil {
			if end := r.offset + int64(at); end > r.suspect {
				// It may be made of a torn tail and of what was written in its place since: look once more.
				r.suspect = end
				r.offset, r.pending = r.offset+int64(done), r.pending[:0]
				return
			}
			r.damaged++ // counted again if the tail is read anew; it is only ever shown as "some"
			continue
		}
		batch = append(batch, e)
		if e.Commit != nil {
			r.ready = r.keep(r.ready, batch)
			batch, done = batch[:0], at
		}
	}
	r.offset += int64(done)
	r.pending = r.pending[:copy(r.pending, r.pending[done:])]
}

func (r *Reader) keep(to, batch []Event) []Event {
	for _, e := range batch {
		if e.Seq > r.after {
			r.after = e.Seq
			to = append(to, e)
		}
	}
	return to
}

// ReadAll returns the committed events behind a sequence, up to now.
func ReadAll(dir string, after uint64) ([]Event, error) {
	r := NewReader(dir, after)
	defer r.Close()
	var all []Event
	for {
		events, err := r.Next()
		if err != nil || len(events) == 0 {
			return all, err
		}
		all = append(all, events...)
	}
}
