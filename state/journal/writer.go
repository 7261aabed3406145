package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/state"
)

// SyncDelay is how long an append that nobody waits for may stay unsynced.
const SyncDelay = 20 * time.Millisecond

// Recovered is what opening a journal found.
type Recovered struct {
	// Commits has the last commit of every runtime that the last segments name.
	Commits map[string]Commit
	// Last is the last sequence, 0 in a new journal.
	Last uint64
	// Torn is the number of bytes of an interrupted append that were cut.
	Torn int64
	// Damaged is the copy of a segment in which lines were damaged, "" if none was.
	Damaged string
}

// Writer appends to the journal of one session. Its methods may be called from any goroutine.
type Writer struct {
	dir string
	now func() time.Time

	mu      sync.Mutex // guards all below; held for write(2)
	file    *os.File
	size    int64
	next    uint64
	buf     []byte
	waiting bool // a delayed sync is on its way
	closed  bool
	failure error // of a delayed sync; told by the next call

	syncing sync.Mutex // held for fsync(2); taken before mu
	synced  uint64     // the last sequence that is on disk; guarded by syncing
}

// Open opens the journal in dir for its one writer, cuts a torn tail and sets damage aside. skip is added
// to the next sequence: a million after a reboot, since what was told and not yet synced is gone with the
// page cache, and its sequences must not be given again. The skip is durable when Open returns.
func Open(dir string, skip uint64, now func() time.Time) (*Writer, Recovered, error) {
	firsts, err := segments(dir)
	if err != nil {
		return nil, Recovered{}, err
	}
	fresh := len(firsts) == 0
	if fresh {
		firsts = []uint64{1 + skip}
	}
	w := &Writer{dir: dir, now: now}
	found, err := w.resume(firsts)
	if err == nil && skip > 0 && !fresh {
		err = w.leap(skip)
	}
	if err != nil {
		if w.file != nil {
			_ = w.file.Close()
		}
		return nil, found, fmt.Errorf("open journal %s: %w", dir, err)
	}
	w.synced = w.next - 1
	return w, found, nil
}

// resume opens the last segment. Those that were begun and not written to say nothing of the last
// sequence, so that it reads back to where two were, and a segment's worth of bytes.
func (w *Writer) resume(firsts []uint64) (Recovered, error) {
	found := Recovered{Commits: map[string]Commit{}}
	for i := w.back(firsts); i < len(firsts); i++ {
		last := i == len(firsts)-1
		if err := w.take(firsts[i], last, &found); err != nil {
			return found, err
		}
	}
	w.next = max(found.Last+1, firsts[len(firsts)-1])
	return found, nil
}

func (w *Writer) back(firsts []uint64) int {
	i, written, size := len(firsts), 0, int64(0)
	for i > 0 && (written < 2 || size < SegmentSize) {
		i--
		if info, err := os.Stat(filepath.Join(w.dir, segmentName(firsts[i]))); err == nil && info.Size() > 0 {
			written, size = written+1, size+info.Size()
		}
	}
	return i
}

// leap begins a segment behind all that may have been told. Its name keeps the leap: another reboot, before
// anything is synced, goes on from there and not from the last line.
func (w *Writer) leap(skip uint64) error {
	w.next += skip
	empty, old := w.size == 0, w.file.Name()
	if err := w.begin(); err != nil {
		return err
	}
	if empty {
		_ = os.Remove(old) // harmless if it stays
	}
	return nil
}

func (w *Writer) take(first uint64, last bool, found *Recovered) error {
	path := filepath.Join(w.dir, segmentName(first))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		_ = f.Close()
		return err
	}
	s := examine(data)
	for runtime, commit := range s.commits {
		found.Commits[runtime] = commit
	}
	found.Last = max(found.Last, s.seq)
	if len(s.damaged) > 0 {
		found.Damaged, err = setAside(w.dir, first, data)
	}
	if !last || err != nil {
		_ = f.Close()
		return err
	}
	found.Torn = int64(len(data)) - s.end
	w.file, w.size = f, s.end
	return w.cut(found.Torn)
}

// cut removes the tail of an interrupted append, so that nothing is ever fused with it.
func (w *Writer) cut(torn int64) error {
	if torn == 0 && w.size > 0 {
		return nil
	}
	if torn > 0 {
		if err := w.file.Truncate(w.size); err != nil {
			return err
		}
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	return state.SyncDir(w.dir)
}

// Append writes events as one whole, numbers them and returns the last sequence. They have been written
// when it returns and may be told; durable says that they are on disk too. events is changed: sequence,
// time (where zero) and the commit of the last. When writing fails nothing of them is in the journal, and
// state.ErrFull says that there is no space; when only syncing fails they are in it, may be told by a reader, and
// may be gone after a power cut: the caller repeats what it says, under the same commit.
func (w *Writer) Append(events []Event, commit Commit, durable bool) (uint64, error) {
	if len(events) == 0 {
		return w.Last(), nil
	}
	last, err := w.write(events, commit)
	if err != nil || !durable {
		return last, err
	}
	return last, w.syncTo(last)
}

// Last is the last sequence that was given.
func (w *Writer) Last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next - 1
}

func (w *Writer) write(events []Event, commit Commit) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, ErrClosed
	}
	if err := w.failure; err != nil {
		w.failure = nil
		return 0, err
	}
	if err := w.roll(); err != nil {
		return 0, fmt.Errorf("next segment: %w", state.Full(err))
	}
	w.number(events, commit)
	crash.At("journal.append")
	if err := w.put(); err != nil {
		return 0, fmt.Errorf("append to journal: %w", state.Full(err))
	}
	crash.At("journal.appended")
	w.next += uint64(len(events))
	w.delaySync()
	return w.next - 1, nil
}

func (w *Writer) number(events []Event, commit Commit) {
	w.buf = w.buf[:0]
	events[len(events)-1].Commit = &commit
	for i := range events {
		e := &events[i]
		e.Seq = w.next + uint64(i)
		if e.Time.IsZero() {
			e.Time = w.now()
		}
		w.buf = appendLine(w.buf, e)
	}
}

// put writes the buffer, or nothing: a part of it that a full disk took is cut off again.
func (w *Writer) put() error {
	n, err := w.file.Write(w.buf)
	if err == nil {
		w.size += int64(n)
		return nil
	}
	if cut := w.file.Truncate(w.size); cut != nil {
		return fmt.Errorf("%w (and cutting it off: %w)", err, cut)
	}
	return err
}

// roll begins the next segment if this one is full.
func (w *Writer) roll() error {
	if w.size < SegmentSize {
		return nil
	}
	return w.begin()
}

// begin begins the next segment. The old one is synced first, so that a later sync of the new file covers
// all.
func (w *Writer) begin() error {
	if err := w.file.Sync(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.dir, segmentName(w.next)), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	crash.At("journal.rolled")
	if err := state.SyncDir(w.dir); err != nil {
		_ = f.Close()
		return err
	}
	_ = w.file.Close()
	w.file, w.size = f, 0
	return nil
}

// delaySync has the buffer synced soon; the mutex is held.
func (w *Writer) delaySync() {
	if w.waiting {
		return
	}
	w.waiting = true
	time.AfterFunc(SyncDelay, func() {
		if err := w.Sync(); err != nil {
			w.mu.Lock()
			w.failure = err
			w.mu.Unlock()
		}
	})
}

// Sync returns when all that was appended is on disk.
func (w *Writer) Sync() error { return w.syncTo(w.Last()) }

// syncTo is the group commit: whoever comes while another syncs waits for it, and finds that the next
// sync, or already that one, covered its own lines.
func (w *Writer) syncTo(seq uint64) error {
	w.syncing.Lock()
	defer w.syncing.Unlock()
	if w.synced >= seq {
		return nil
	}
	w.mu.Lock()
	file, upTo, closed := w.file, w.next-1, w.closed
	w.waiting = false
	w.mu.Unlock()
	if closed {
		return nil
	}
	if err := file.Sync(); err != nil && !w.replaced(file) {
		return fmt.Errorf("sync journal: %w", state.Full(err))
	}
	crash.At("journal.synced")
	w.synced = upTo
	return nil
}

// replaced reports whether file is no longer the current segment: roll synced it before it closed it.
func (w *Writer) replaced(file *os.File) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file != file
}

// Close syncs and closes the journal. Closing twice is fine.
func (w *Writer) Close() error {
	err := w.Sync()
	w.syncing.Lock()
	defer w.syncing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if closing := w.file.Close(); err == nil {
		err = closing
	}
	return err
}
