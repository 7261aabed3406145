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

// ack drops the files that lie wholly in front of offset. If that is the end of all there is, the newest is one of
// them: what a run said is not kept on disk by an agent that stays for the next one (E5). After the agent's end there
// is nothing to do: the files go with the runtime's directory, and may be going.
func (s *spool) ack(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset <= s.acked || offset > s.end {
		return
	}
	s.acked = offset
	s.cond.Broadcast()
	if offset == s.end && s.end > s.first {
		s.renew()
	}
	dropSegments(s.dir, s.name, offset)
	crash.At("shim.spool.dropped")
}

// renew begins the next file where the stream ends, so that all before it can go. The length of a dead shim's stream is
// told by its files' names alone, so the new one is there, for a power cut too, before an old one is removed:
//
//   - Killed before the new file is there: the old one tells the end, and has the bytes, as if nothing had been
//     acknowledged.
//   - Killed between the two: the new file wins as to the end, being the last; both tell the same. The old one still has
//     its bytes, for a reader that comes back for them.
//   - Killed after: the new file tells the end, and what was in front of it is a gap.
//
// A removal that a power cut undoes leaves the second state, of another boot, whose runtimes are settled and removed.
func (s *spool) renew() {
	if err := s.roll(); err != nil {
		s.empty()
		return
	}
	_ = state.SyncDir(s.dir) // that fails on a broken disk only, and the bytes have to go all the same
	crash.At("shim.spool.begun")
}

// empty is renew on a disk that is too full for one more file: the old one becomes the new one. Killed between the two
// steps, the stream tells an end in front of what was acknowledged, behind which nobody looks for anything.
func (s *spool) empty() {
	if s.file.Truncate(0) != nil {
		return // the bytes stay until the next file
	}
	crash.At("shim.spool.emptied")
	if os.Rename(filepath.Join(s.dir, segmentFile(s.name, s.first)), filepath.Join(s.dir, segmentFile(s.name, s.end))) == nil {
		s.first = s.end
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

// ReadSpool reads what a stream holds at offset into p, up to the end of one file. It returns 0 and io.EOF
// at the stream's end.
func ReadSpool(dir, stream string, offset int64, p []byte) (int, error) {
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
