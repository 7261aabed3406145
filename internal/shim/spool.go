package shim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/state"
)

// segmentSize is the size in bytes of one file of a spool.
const segmentSize = 4 << 20

// retryFull is how often a write to a full disk is tried again.
const retryFull = 200 * time.Millisecond

// The streams of an agent, as their spools' files are called.
const (
	Out = "out"
	Err = "err"
)

// spool keeps one stream's bytes in files named by their first offset, until they are acknowledged. The last file may
// be empty: its name then tells where the stream ends.
type spool struct {
	dir, name string
	limit     int64
	segment   int64 // size in bytes of one file

	mu    sync.Mutex
	cond  *sync.Cond
	file  *os.File
	first int64 // offset of the current file
	end   int64
	acked int64
}

func newSpool(dir, name string, limit int64) *spool {
	s := &spool{dir: dir, name: name, limit: limit, segment: segmentSize}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// write appends p. It waits while too much is unacknowledged, and while the disk is full: the agent then
// feels a pipe that nobody reads, and nothing is dropped.
func (s *spool) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.end-s.acked > s.limit {
		s.cond.Wait()
	}
	for {
		err := s.append(p)
		if err == nil || !errors.Is(err, state.ErrFull) {
			return err
		}
		s.mu.Unlock()
		time.Sleep(retryFull) //nolint:forbidigo // nothing tells when a disk has space again
		s.mu.Lock()
	}
}

func (s *spool) append(p []byte) error {
	if s.file == nil || s.end-s.first >= s.segment {
		if err := s.roll(); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(p, s.end-s.first); err != nil {
		return fmt.Errorf("write spool: %w", state.Full(err)) // what it left is written over
	}
	s.end += int64(len(p))
	return nil
}

func (s *spool) roll() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("make spool: %w", state.Full(err))
	}
	f, err := os.OpenFile(filepath.Join(s.dir, segmentFile(s.name, s.end)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("make spool: %w", state.Full(err))
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file, s.first = f, s.end
	return nil
}

// ack drops what lies in front of offset, to the byte: what a run said, of an agent that stays for the next one, is not
// kept on disk because the newest file has a byte behind it (E5). After the agent's end there is nothing to do: the files
// go with the runtime's directory, and may be going.
func (s *spool) ack(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset <= s.acked || offset > s.end {
		return
	}
	s.acked = offset
	s.cond.Broadcast()
	s.cut(offset)
	dropSegments(s.dir, s.name, offset)
	crash.At("shim.spool.dropped")
}

// cut has a file begin at offset, so that all files before it can go. It is made under another name, since a dead shim's
// stream is as long as the name and the size of its last file say, and is there, for a power cut too, before an old one
// is removed:
//
//   - Killed before it has its name: it counts for nothing. The old file tells the end and has the bytes, as if nothing
//     had been acknowledged.
//   - Killed between that and the removal: the new file wins where both have a byte, which is the same one, and as the
//     last it tells the end, which is the same too. The old one still has what is in front.
//   - Killed after: what is in front is a gap.
//
// A removal that a power cut undoes leaves the second state, of another boot, whose runtimes are settled and removed.
func (s *spool) cut(offset int64) {
	firsts := segmentsOf(s.dir, s.name)
	i, found := slices.BinarySearch(firsts, offset)
	if found || i == 0 {
		return
	}
	first, to, from := firsts[i-1], s.end, s.file
	if i < len(firsts) {
		f, err := os.OpenFile(filepath.Join(s.dir, segmentFile(s.name, first)), os.O_RDWR, 0)
		if err != nil {
			warn("drop what was acknowledged: %v", err) // it goes with its file
			return
		}
		defer f.Close()
		to, from = firsts[i], f
	}
	rest, err := s.begin(offset, io.NewSectionReader(from, offset-first, to-offset))
	switch {
	case err != nil:
		warn("drop what was acknowledged: %v", err)
		blank(from, offset-first)
	case from == s.file:
		_ = s.file.Close()
		s.file, s.first = rest, offset
	default:
		_ = rest.Close()
	}
}

// begin makes the file that begins at offset, with the bytes that the stream has there.
func (s *spool) begin(offset int64, content *io.SectionReader) (*os.File, error) {
	temporary := filepath.Join(s.dir, "."+s.name) // none of the stream's files
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, content)
	if err == nil && n < content.Size() {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && n > 0 {
		err = f.Sync()
	}
	crash.At("shim.spool.copied")
	if err == nil {
		err = os.Rename(temporary, filepath.Join(s.dir, segmentFile(s.name, offset)))
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(temporary)
		return nil, err
	}
	_ = state.SyncDir(s.dir) // that fails on a broken disk only, and the bytes have to go all the same
	crash.At("shim.spool.begun")
	return f, nil
}

// blank is for a disk that is too full for one more file: what was acknowledged is written over in place. It is not a gap
// then but zeros, which nobody reads who has taken in what was there.
func blank(f *os.File, size int64) {
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return
		}
	}
}

// lift takes the limit away: the agent is dead, and what it left in the pipe is not much.
func (s *spool) lift() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = math.MaxInt64
	s.cond.Broadcast()
}

func (s *spool) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// sync makes the stream durable; the files before the last are, or are not needed, since exit.json is
// written after it and a supervisor syncs what it took in before it acknowledges.
func (s *spool) sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = s.end // wakes a writer that waits: there is none any more
	if s.file == nil {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync spool: %w", state.Full(err))
	}
	return state.SyncDir(s.dir)
}

func segmentFile(name string, first int64) string { return fmt.Sprintf("%s-%020d", name, first) }

// segmentsOf returns the first offsets of a stream's files, in order.
func segmentsOf(dir, name string) []int64 {
	entries, _ := os.ReadDir(dir)
	var firsts []int64
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), name+"-")
		if first, err := strconv.ParseInt(digits, 10, 64); ok && err == nil {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts
}

func dropSegments(dir, name string, offset int64) {
	firsts := segmentsOf(dir, name)
	for i := 0; i+1 < len(firsts) && firsts[i+1] <= offset; i++ {
		_ = os.Remove(filepath.Join(dir, segmentFile(name, firsts[i])))
	}
}

// ErrGap is returned by ReadSpool when the bytes at an offset are not there any more.
var ErrGap = errors.New("spool has a gap")

// looks is how often a reader looks for the file that has his bytes before he believes that there is none: an ack that he
// sent may be making a new file of it just then, so that he finds the old one, which is gone when he opens it, or neither.
const looks = 3

// ReadSpool reads what a stream holds at offset into p, up to the end of one file. It returns 0 and io.EOF
// at the stream's end.
func ReadSpool(dir, stream string, offset int64, p []byte) (n int, err error) {
	for i := 0; i < looks && n == 0; i++ {
		n, err = readSegment(dir, stream, offset, p)
	}
	return n, err
}

func readSegment(dir, stream string, offset int64, p []byte) (int, error) {
	firsts := segmentsOf(dir, stream)
	i, found := slices.BinarySearch(firsts, offset)
	if !found {
		i--
	}
	if i < 0 {
		if len(firsts) > 0 {
			return 0, fmt.Errorf("%s at %d: %w", stream, offset, ErrGap)
		}
		return 0, io.EOF
	}
	f, err := os.Open(filepath.Join(dir, segmentFile(stream, firsts[i])))
	if err != nil {
		return 0, fmt.Errorf("read spool: %w", err)
	}
	defer f.Close()
	n, err := f.ReadAt(p, offset-firsts[i])
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// SpoolEnd is the length of a stream in bytes, as far as it is on disk.
func SpoolEnd(dir, stream string) int64 {
	firsts := segmentsOf(dir, stream)
	if len(firsts) == 0 {
		return 0
	}
	last := firsts[len(firsts)-1]
	info, err := os.Stat(filepath.Join(dir, segmentFile(stream, last)))
	if err != nil {
		return last
	}
	return last + info.Size()
}
