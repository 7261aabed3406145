// Package rpc carries JSON-RPC 2.0 over Unix sockets, one object a line, between a client and a
// supervisor. It knows no method but $/cancel and connection/closing.
//
// Invariants:
//   - Memory is bounded: a line over MaxLine is skipped, not kept; requests in flight are counted; what
//     waits for a slow peer is counted too.
//   - What is no JSON, or of the wrong shape, is answered with the error for it, and the connection goes on.
//   - No peer holds a goroutine for ever: writing has a deadline.
//   - A peer of another user is never served and never spoken to.
//
// It is no place for the meaning of requests, for grants, heartbeats or clients that outlive connections:
// those are the handler's.
//
// The library underneath (sourcegraph/jsonrpc2) has no limits, closes on malformed input and loses the
// codes of wrapped errors; its stream and its handler are replaced here, and none of its types leave.
package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/rpc/api"
)

const (
	// MaxLine is the longest line in bytes that is read or written (C12).
	MaxLine = 4 << 20
	// MaxStranger is the longest line from a peer that has not said hello.
	MaxStranger = 64 << 10
	// MaxSkip is how many bytes without a newline close a connection (C12).
	MaxSkip = 64 << 20
	// MaxFrame is the longest binary frame in bytes that is kept.
	MaxFrame = 1 << 20
)

// The close codes of connection/closing (C4, C5, C6, C12).
const (
	CloseGoing        = 1001
	CloseTooLarge     = 1009
	CloseHelloTimeout = 4001
	CloseHello        = 4002
	CloseProtocol     = 4003
	CloseToken        = 4401
	CloseRevoked      = 4403
)

// stream is the library's ObjectStream over a connection.
type stream struct {
	conn net.Conn
	in   *bufio.Reader
	out  *writer
	max  atomic.Int64 // the longest line that is kept

	// refuse answers what is no message; the connection goes on if it returns nil.
	refuse func(*malformed) error
	// frame takes a binary frame of size bytes from r. It must read all of it or return an error.
	frame func(r io.Reader, size int64) error
}

func newStream(conn net.Conn, writeTimeout time.Duration) *stream {
	s := &stream{
		conn: conn, in: bufio.NewReaderSize(conn, 16<<10), out: newWriter(conn, writeTimeout),
		refuse: func(m *malformed) error { return m.why },
		frame:  func(io.Reader, int64) error { return errors.New("unexpected binary frame") },
	}
	s.max.Store(MaxLine)
	return s
}

// WriteObject writes one line.
func (s *stream) WriteObject(obj any) error {
	line, err := encode(obj)
	if err != nil {
		return err
	}
	return s.out.write(line)
}

// ReadObject reads the next well-formed message into v; what is not one it gives to refuse.
func (s *stream) ReadObject(v any) error {
	for {
		line, err := s.line()
		if err == nil {
			err = decode(line, v)
		}
		var bad *malformed
		if !errors.As(err, &bad) {
			return err
		}
		if err := s.refuse(bad); err != nil {
			return err
		}
	}
}

// line returns the next line, without its newline and valid until the next call. It takes the binary
// frames before it out of the stream: a line never begins with 0x00 (C13).
func (s *stream) line() ([]byte, error) {
	for {
		first, err := s.in.Peek(1)
		if err != nil {
			return nil, err
		}
		if first[0] != 0 {
			return s.bounded()
		}
		var head [5]byte
		if _, err := io.ReadFull(s.in, head[:]); err != nil {
			return nil, err
		}
		if err := s.frame(s.in, int64(binary.BigEndian.Uint32(head[1:]))); err != nil {
			return nil, err
		}
	}
}

// bounded reads one line and keeps at most max bytes of it. Bytes at the end of the stream without a
// newline are half a message, written by one who died: they are nothing.
func (s *stream) bounded() ([]byte, error) {
	part, err := s.in.ReadSlice('\n')
	if err == nil { // nearly all lines: no copy
		return part[:len(part)-1], nil
	}
	var line []byte
	max := int(s.max.Load())
	for total := 0; ; part, err = s.in.ReadSlice('\n') {
		total += len(part)
		if total <= max+1 {
			line = append(line, part...)
		} else {
			line = nil
		}
		switch {
		case err == nil && total > max+1:
			return nil, refuse(nil, api.CodeRequest, "a line over %d bytes was skipped", max)
		case err == nil:
			return line[:total-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case total >= MaxSkip:
			return nil, &malformed{closing: CloseTooLarge, why: api.E(api.CodeRequest, "no newline in 64 MiB")}
		}
	}
}

// Close closes the connection.
func (s *stream) Close() error { return s.conn.Close() }
