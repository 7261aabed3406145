package shim

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/state"
)

// Input is a line of stdin.jsonl. An intent has N, Op, After and Data; the line that closes it has N and
// Written. An intent without its Written may or may not have reached the agent.
type Input struct {
	N       int64  `json:"n"`
	Op      string `json:"op,omitempty"`
	After   int64  `json:"after,omitempty"` // bytes of output that had been consumed when it was made
	Data    []byte `json:"data,omitempty"`
	Written bool   `json:"written,omitempty"`
	Error   string `json:"error,omitempty"` // the pipe was closed: not a byte of the last line arrived
}

// input is the agent's standard input: one writer, and the record before each write.
type input struct {
	mu   sync.Mutex
	pipe io.WriteCloser // nil once ended
	log  *os.File
	seed maphash.Seed
	ops  map[string]outcome
}

// outcome is what became of an operation. Of its data a hash is enough to tell that it comes again with other: an agent
// may stay for many turns, and each may be of megabytes.
type outcome struct {
	data    uint64
	written bool
	err     string
}

func newInput(path string, pipe io.WriteCloser) (*input, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open record of the input: %w", state.Full(err))
	}
	return &input{pipe: pipe, log: f, seed: maphash.MakeSeed(), ops: map[string]outcome{}}, nil
}

var (
	errEnded    = errors.New("the agent's input is closed")
	errConflict = errors.New("operation has other data")
	errLate     = errors.New("who sent it does not have this runtime any more")
)

// write carries out one operation, once. It may block as long as the agent does not read. begin reports whether who sent it
// may still have it carried out; until done is called nobody else becomes that, so that whoever does finds it recorded.
func (in *input) write(want Input, begin func() (done func(), ok bool)) (Input, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	sum := maphash.Bytes(in.seed, want.Data)
	if known, ok := in.ops[want.Op]; ok {
		want.Written, want.Error = known.written, known.err
		if known.data != sum {
			return want, errConflict
		}
		return want, nil
	}
	if in.pipe == nil {
		return want, errEnded
	}
	if err := in.intend(want, begin); err != nil {
		return want, err
	}
	crash.At("shim.stdin.recorded")
	_, err := in.pipe.Write(want.Data)
	crash.At("shim.stdin.written")
	done := Input{N: want.N, Written: err == nil}
	if err != nil {
		done.Error = err.Error()
	}
	want.Written, want.Error = done.Written, done.Error
	in.ops[want.Op] = outcome{sum, want.Written, want.Error}
	return want, in.note(done)
}

// intend records that a write comes.
func (in *input) intend(want Input, begin func() (done func(), ok bool)) error {
	done, ok := begin()
	defer done()
	if !ok {
		return errLate
	}
	return in.record(want)
}

// record makes a line durable.
func (in *input) record(line Input) error {
	if err := in.note(line); err != nil {
		return err
	}
	if err := in.log.Sync(); err != nil {
		return fmt.Errorf("record input: %w", state.Full(err))
	}
	return nil
}

// note writes a line. What became of an intent needs no more: a power cut that takes it takes the agent too.
func (in *input) note(line Input) error {
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode input: %w", err)
	}
	if _, err := in.log.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("record input: %w", state.Full(err))
	}
	return nil
}

func (in *input) end(begin func() (done func(), ok bool)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	done, ok := begin()
	defer done()
	if ok && in.pipe != nil {
		_ = in.pipe.Close()
		in.pipe = nil
	}
}

// ReadInputs returns the intents of a stdin.jsonl with what is known of each, in order. A torn last line
// never became an intent: it was not synced, so nothing was written.
func ReadInputs(path string) ([]Input, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record of the input: %w", err)
	}
	defer f.Close()
	return parseInputs(bufio.NewReader(f))
}

func parseInputs(r *bufio.Reader) ([]Input, error) {
	var intents []Input
	at := map[int64]int{}
	for {
		line, err := readLine(r, maxMessage)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return intents, nil
		}
		if err != nil {
			return intents, err
		}
		var in Input
		if err := json.Unmarshal(line, &in); err != nil {
			return intents, fmt.Errorf("%w: %w", state.ErrDamaged, err)
		}
		if i, ok := at[in.N]; ok && in.Op == "" {
			intents[i].Written, intents[i].Error = in.Written, in.Error
			continue
		}
		at[in.N] = len(intents)
		intents = append(intents, in)
	}
}
