// Package shim is the small process between pintle and one agent. It outlives the supervisor: it owns the
// agent's standard input and output and its process tree, keeps what the agent says on disk until a
// supervisor has taken it in, and ends the tree with proof.
//
// Invariants:
//   - The lock of the runtime is held from before anything is started until the shim's end; only a free
//     lock proves that the shim is dead, and then nothing may be started under that runtime again.
//   - "starting" is on disk before the fork, the identity of the agent before anybody is told of it.
//   - Nothing reaches the agent's input that was not recorded first, and no operation twice.
//   - One controller, the one with the highest epoch; not one byte of an older one is carried out.
//   - Nothing of the agent's tree is left when exit.json is written, or what is left is named in it.
//
// It knows nothing of agents' protocols: it copies bytes.
package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// WireVersion is frozen: an upgraded supervisor must drive shims that were started years ago.
const WireVersion = 1

// maxMessage is the longest message in bytes; a prompt of some megabytes fits with its quoting.
const maxMessage = 64 << 20

// message is every message, both ways: "m" says which fields count.
//
// To the shim: hello{epoch} write{n,op,after,data} ack{out,err} end signal{n,sig} resize{rows,cols} env
// deadline{at}. From it: hello{version,agent,out,err,exit} started{agent} data{out,err} written{n,op}
// signalled{n} env{env} exit{exit} refused{error}.
type message struct {
	M       string   `json:"m"`
	Version int      `json:"version,omitempty"`
	Epoch   int64    `json:"epoch,omitempty"`
	N       int64    `json:"n,omitempty"`
	Op      string   `json:"op,omitempty"`
	After   int64    `json:"after,omitempty"`
	Data    []byte   `json:"data,omitempty"`
	Out     int64    `json:"out,omitempty"`
	Err     int64    `json:"err,omitempty"`
	Sig     int      `json:"sig,omitempty"`
	Rows    int      `json:"rows,omitempty"`
	Cols    int      `json:"cols,omitempty"`
	At      int64    `json:"at,omitempty"` // proc.BootClock, in nanoseconds
	Env     []string `json:"env,omitempty"`
	Agent   *Agent   `json:"agent,omitempty"`
	Exit    *Exit    `json:"exit,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// link is one connection: messages as JSON lines.
type link struct {
	late   bool // another controller has come since; guarded by the shim
	conn   net.Conn
	in     *bufio.Reader
	writes sync.Mutex
}

func newLink(conn net.Conn) *link { return &link{conn: conn, in: bufio.NewReaderSize(conn, 4<<10)} }

// sendTimeout is how long the other side may refuse to read before it is cut off: neither a frozen
// supervisor nor a frozen shim may hold the other one up.
const sendTimeout = 5 * time.Second

func (l *link) send(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.M, err)
	}
	l.writes.Lock()
	defer l.writes.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := l.conn.Write(append(line, '\n')); err != nil {
		_ = l.conn.Close() // half a line may be out
		return fmt.Errorf("send %s: %w", m.M, err)
	}
	return nil
}

var errMessage = errors.New("malformed message")

func (l *link) receive() (message, error) {
	line, err := readLine(l.in, maxMessage)
	if err != nil {
		return message{}, err
	}
	return decodeMessage(line)
}

func decodeMessage(line []byte) (message, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.M == "" {
		return message{}, fmt.Errorf("%w: %.80q", errMessage, line)
	}
	return m, nil
}

// readLine reads a line of at most limit bytes, without its newline.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, fmt.Errorf("%w: over %d bytes", errMessage, limit)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
