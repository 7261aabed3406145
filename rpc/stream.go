// Package rpc carries JSON-RPC 2.0 over Unix sockets, one object a line, between a client and a
// supervisor. It knows no method.
//
// Invariants:
//   - Memory is bounded: a line over MaxLine is skipped, not kept; requests in flight are counted.
//   - What is no JSON, or of the wrong shape, is answered with the error for it, and the connection goes on.
//   - A peer of another user is never served and never spoken to.
//
// The library underneath (sourcegraph/jsonrpc2) has no limits, closes on malformed input and loses the
// codes of wrapped errors; its stream and its handler are replaced here, and none of its types leave.
package rpc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

const (
	// MaxLine is the longest line in bytes that is read (C12).
	MaxLine = 4 << 20
	// MaxSkip is how many bytes without a newline close a connection (C12).
	MaxSkip = 64 << 20
	// writeTimeout is how long a peer may refuse to read before its connection is dropped.
	writeTimeout = 30 * time.Second
)

// The close codes of connection/closing (C5, C6, C12).
const (
	CloseGoing    = 1001
	CloseTooLarge = 1009
	CloseHello    = 4002
	CloseProtocol = 4003
)

var (
	errTooLong = errors.New("line is too long")
	errEndless = errors.New("no newline in too many bytes")
	errBinary  = errors.New("binary frame")
)

// stream is the library's ObjectStream over a connection.
type stream struct {
	conn   net.Conn
	in     *bufio.Reader
	writes sync.Mutex
}

func newStream(conn net.Conn) *stream {
	return &stream{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}
}

// WriteObject writes one line. A peer that does not read for writeTimeout loses its connection: half a
// line may be out, so nothing can follow it.
func (s *stream) WriteObject(obj any) error {
	line, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.conn.Write(append(line, '\n')); err != nil {
		_ = s.conn.Close()
		return fmt.Errorf("write message: %w", err)
	}
	return nil
}

// ReadObject reads the next well-formed message into v and answers what is not one.
func (s *stream) ReadObject(v any) error {
	for {
		line, err := s.line()
		switch {
		case errors.Is(err, errTooLong):
			s.refuse(nil, api.E(api.CodeRequest, "a line over %d bytes was skipped", MaxLine))
			continue
		case errors.Is(err, errEndless):
			s.close(CloseTooLarge, "no newline in 64 MiB")
			return err
		case errors.Is(err, errBinary):
			s.close(CloseHello, "binary frames are for terminals")
			return err
		case err != nil:
			return err
		}
		if refusal, id := s.check(line); refusal != nil {
			s.refuse(id, refusal)
			continue
		}
		return json.Unmarshal(line, v)
	}
}

// line reads one line, without its newline, of at most MaxLine bytes.
func (s *stream) line() ([]byte, error) {
	var line []byte
	for total := 0; ; {
		part, err := s.in.ReadSlice('\n')
		if total == 0 && len(part) > 0 && part[0] == 0 {
			return nil, errBinary
		}
		total += len(part)
		if total <= MaxLine+1 {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && total > MaxSkip:
			return nil, errEndless
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && total > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case total > MaxLine+1:
			return nil, errTooLong
		default:
			return line[:len(line)-1], nil
		}
	}
}

// message is what a line must look like to be one.
type message struct {
	JSONRPC string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id"`
	Method  *string          `json:"method"`
	Result  *json.RawMessage `json:"result"`
	Error   *json.RawMessage `json:"error"`
}

// check returns the refusal for a line that is no message, with the id to answer under.
func (s *stream) check(line []byte) (*api.Error, *json.RawMessage) {
	if !json.Valid(line) {
		return api.E(api.CodeParse, "not JSON"), nil
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return api.E(api.CodeRequest, "not a JSON-RPC message: want one object a line"), nil
	}
	if m.ID != nil && !validID(*m.ID) {
		return api.E(api.CodeRequest, "an id is a string or a number"), nil
	}
	if m.JSONRPC != "2.0" || (m.Method == nil) == (m.Result == nil && m.Error == nil) {
		return api.E(api.CodeRequest, `not a JSON-RPC message: want "jsonrpc":"2.0" and a method`), m.ID
	}
	var probe jsonrpc2.Request
	if m.Method != nil && json.Unmarshal(line, &probe) != nil {
		return api.E(api.CodeRequest, "not a JSON-RPC request"), m.ID
	}
	return nil, nil
}

func validID(raw json.RawMessage) bool {
	var id jsonrpc2.ID
	return json.Unmarshal(raw, &id) == nil && string(raw) != "null"
}

func (s *stream) refuse(id *json.RawMessage, e *api.Error) {
	_ = s.WriteObject(struct {
		JSONRPC string           `json:"jsonrpc"`
		ID      *json.RawMessage `json:"id"`
		Error   *jsonrpc2.Error  `json:"error"`
	}{"2.0", id, toWire(e)})
}

// close tells the peer why and closes the connection (C6).
func (s *stream) close(code int, reason string) {
	_ = s.WriteObject(struct {
		JSONRPC string      `json:"jsonrpc"`
		Method  string      `json:"method"`
		Params  api.Closing `json:"params"`
	}{"2.0", api.NotifyClosing, api.Closing{Code: code, Reason: reason}})
	_ = s.conn.Close()
}

// Close closes the connection.
func (s *stream) Close() error { return s.conn.Close() }
