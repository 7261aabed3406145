package rpc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// MaxQueue and MaxQueueBytes bound the notifications that wait for a slow peer (C11).
	MaxQueue      = 1024
	MaxQueueBytes = 8 << 20
	// writeTimeout is how long a peer may refuse to read before its connection is dropped.
	writeTimeout = 30 * time.Second
	// lastTimeout is how long it may when the connection ends anyway.
	lastTimeout = time.Second
)

// writer writes lines whole and in the order they were given: a queued line goes before one written later.
// There is no goroutine while nothing is queued.
type writer struct {
	conn    net.Conn
	timeout time.Duration
	lingers bool // a peer that closed is left to the reader, who may find its reason

	turn sync.Mutex // held while writing; taken before mu

	mu     sync.Mutex
	queue  [][]byte
	bytes  int       // in queue
	drains bool      // a goroutine drains the queue
	until  time.Time // the deadline of all writing, if set
	gone   chan struct{}
	ended  bool // gone is closed
	work   sync.WaitGroup
}

func newWriter(conn net.Conn, timeout time.Duration) *writer {
	return &writer{conn: conn, timeout: timeout, gone: make(chan struct{})}
}

// write writes a line after those queued, and returns when it is out or the connection is lost.
func (w *writer) write(line []byte) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	if err := w.flush(); err != nil {
		return err
	}
	return w.put(line)
}

// enqueue has a line written soon. It never waits: over the bound the line is not taken.
func (w *writer) enqueue(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return ErrGone
	case len(w.queue) >= MaxQueue, len(w.queue) > 0 && w.bytes+len(line) > MaxQueueBytes:
		return ErrLagged
	}
	w.queue = append(w.queue, line)
	w.bytes += len(line)
	if !w.drains {
		w.drains = true
		w.work.Go(w.drain)
	}
	return nil
}

func (w *writer) drain() {
	w.turn.Lock()
	defer w.turn.Unlock()
	for w.flush() == nil {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.drains = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
	}
}

// flush writes what is queued. A line leaves the queue once it is out, so that the bound counts it till then.
func (w *writer) flush() error {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.queue = nil
			w.mu.Unlock()
			return nil
		}
		line := w.queue[0]
		w.mu.Unlock()
		if err := w.put(line); err != nil {
			return err
		}
		w.mu.Lock()
		w.queue, w.bytes = w.queue[1:], w.bytes-len(line)
		w.mu.Unlock()
	}
}

// put writes one line; the caller has the turn. A peer that does not read in time loses its connection,
// since nothing can follow half a line. Only a line that was interrupted before its first byte is harmless.
func (w *writer) put(line []byte) error {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return ErrGone
	}
	until := w.until
	if until.IsZero() {
		until = time.Now().Add(w.timeout)
	}
	_ = w.conn.SetWriteDeadline(until)
	w.mu.Unlock()
	n, err := w.conn.Write(line)
	if err == nil {
		return nil
	}
	switch late := errors.Is(err, os.ErrDeadlineExceeded); {
	case late && n == 0 && w.interrupted():
	case !late && w.lingers:
	default:
		w.end()
	}
	return fmt.Errorf("write message: %w", err)
}

// limit sets a deadline for all writing, that under way included; the zero time takes it away.
func (w *writer) limit(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = until
	if !until.IsZero() {
		_ = w.conn.SetWriteDeadline(until)
	}
}

func (w *writer) interrupted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.until.IsZero()
}

// last writes a line as the last one, if that goes soon, and ends the connection.
func (w *writer) last(line []byte) {
	w.limit(time.Now().Add(lastTimeout))
	_ = w.write(line)
	w.end()
}

// end closes the connection. Nothing is queued or written from then on.
func (w *writer) end() {
	_ = w.conn.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		close(w.gone)
	}
}
