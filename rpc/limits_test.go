package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

func TestC12_GarbageIsAnsweredAndConnectionGoesOn(t *testing.T) {
	tests := []struct {
		line string
		id   string
		code api.Code
	}{
		{``, "null", api.CodeParse},
		{`garbage`, "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"method":"x"`, "null", api.CodeParse},
		{`{"jsonrpc":"2.0","id":1,"method":"x"}{}`, "null", api.CodeParse},
		{"\xff\xfe", "null", api.CodeParse},
		{`null`, "null", api.CodeRequest},
		{`5`, "null", api.CodeRequest},
		{`"text"`, "null", api.CodeRequest},
		{`{}`, "null", api.CodeRequest},
		{`[]`, "null", api.CodeRequest},
		{`[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, "null", api.CodeRequest},
		{`{"id":1,"method":"x"}`, "1", api.CodeRequest},
		{`{"jsonrpc":"1.0","id":"a","method":"x"}`, `"a"`, api.CodeRequest},
		{`{"jsonrpc":2.0,"id":1,"method":"x"}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1,"method":null}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"x","result":1}`, "1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, "null", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":{},"method":"x"}`, "null", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":true,"method":"x"}`, "null", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":-1,"method":"x"}`, "-1", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, "1.5", api.CodeRequest},
		{`{"jsonrpc":"2.0","id":9223372036854775808,"method":"x"}`, "9223372036854775808", api.CodeRequest},
		// The library would see these members, the check does not.
		{`{"jsonrpc":"2.0","id":1,"method":"x","Result":1}`, "null", api.CodeRequest},
		{`{"jsonrpc":"2.0","result":1}`, "null", api.CodeRequest},
	}
	p := raw(t, &Server{Handler: echo})
	for _, tt := range tests {
		p.say(tt.line, "\n")
		p.refused(tt.id, tt.code)
		if t.Failed() {
			t.Fatalf("after %q", tt.line)
		}
	}
	p.alive()
}

// A half-decoded request must not stick to the next message.
func TestC12_AnswersOfNobodyAreIgnored(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"x","Result":1}` + "\n")
	p.refused("null", api.CodeRequest)
	p.say(`{"jsonrpc":"2.0","id":7,"result":true}`+"\n", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`+"\n")
	p.alive()
}

func TestC12_IdsComeBackAsTheyWere(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	for _, id := range []string{`0`, `1`, `9223372036854775807`, `""`, `"0"`, `"é\n"`} {
		p.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"echo"}` + "\n")
		if m := p.hear(); string(m.ID) != id || m.Error != nil {
			t.Errorf("id %s came back as %s, %+v", id, m.ID, m.Error)
		}
	}
}

func TestC12_LineOver4MiBIsSkipped(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	head, tail := `{"jsonrpc":"2.0","id":1,"method":"echo","params":["`, `"]}`
	p.say(head, strings.Repeat("x", MaxLine+1-len(head)-len(tail)), tail, "\n")
	p.refused("null", api.CodeRequest)
	p.alive()
	// One of just the limit is taken; its answer is over it only if it were longer than the question.
	p.say(`{"jsonrpc":"2.0","method":"echo","params":["`, strings.Repeat("x", MaxLine-47), `"]}`, "\n")
	p.alive()
}

func TestC12_64MiBWithoutNewlineCloses1009WithBoundedMemory(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range MaxSkip / len(chunk) {
		if _, err := p.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	p.closed(CloseTooLarge)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 48<<20 {
		t.Errorf("allocated %d MiB for 64 MiB of nothing", grown>>20)
	}
}

func TestC12_ManySkippedLinesAllocateLittle(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	long := append(bytes.Repeat([]byte("x"), 32<<20), '\n')
	for range 4 {
		if _, err := p.Write(long); err != nil {
			t.Fatal(err)
		}
		p.refused("null", api.CodeRequest)
	}
	p.alive()
}

func frame(size int) []byte {
	b := make([]byte, 5+size)
	binary.BigEndian.PutUint32(b[1:], uint32(size))
	return b
}

func TestC13_FrameBeforeHelloCloses4002(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	p.say(string(frame(3)))
	p.closed(CloseHello)
}

// greeter greets at any request and echoes.
var greeter = HandlerFunc(func(_ context.Context, p *Peer, _ string, params json.RawMessage) (any, error) {
	p.Greet()
	return params, nil
})

func TestC13_FramesShareTheStream(t *testing.T) {
	p := raw(t, &Server{Handler: greeter})
	p.alive()
	for _, size := range []int{0, 1, 100_000, MaxFrame + 1} {
		p.say(string(frame(size)))
		if m := p.hear(); m.Method != NotifyFrame {
			t.Errorf("frame of %d bytes: heard %+v", size, m)
		}
		p.alive()
	}
	p.say("\x00\xff\xff\xff\xff")
	p.closed(CloseTooLarge)
}

func TestC13_FramesAreHandedOverInOrder(t *testing.T) {
	frames := make(chan string, 2)
	p := raw(t, &Server{Handler: greeter, OnFrame: func(_ *Peer, f []byte) error {
		frames <- string(f)
		if len(f) < 2 {
			return api.E(api.CodeParams, "shorter than 2 bytes")
		}
		return nil
	}})
	p.alive()
	p.say("\x00\x00\x00\x00\x04\x02\x09\n\n", "\x00\x00\x00\x00\x01x")
	if m := p.hear(); m.Method != NotifyFrame || !strings.Contains(string(m.Params), `"invalid_params"`) {
		t.Errorf("heard %+v", m)
	}
	if a, b := <-frames, <-frames; a != "\x02\x09\n\n" || b != "x" {
		t.Errorf("frames %q, %q", a, b)
	}
	p.alive()
}
