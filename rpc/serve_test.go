package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/rpc/api"
)

func TestTypedErrorsKeepTheirCodeOverTheWire(t *testing.T) {
	refusal := &api.Error{
		Code: api.CodeStaleFence, Message: "fence 3 is stale", Retryable: true, Next: "pintle attach s-1",
		Fields: []string{"prompt"}, Data: map[string]any{"currentFence": 4.0, "owner": map[string]any{"client": "c"}},
	}
	tests := map[string]struct {
		err  error
		code api.Code
		text string
	}{
		"typed":   {refusal, api.CodeStaleFence, "fence 3 is stale"},
		"wrapped": {fmt.Errorf("send: %w", refusal), api.CodeStaleFence, "send: fence 3 is stale"},
		"plain":   {io.ErrNoProgress, api.CodeInternal, io.ErrNoProgress.Error()},
		"no JSON": {&api.Error{Code: api.CodeBusy, Data: map[string]any{"f": func() {}}}, api.CodeBusy, ""},
	}
	c := client(t, &Server{Handler: HandlerFunc(func(_ context.Context, _ *Peer, method string, _ json.RawMessage) (any, error) {
		return nil, tests[method].err
	})})
	for name, tt := range tests {
		e := typed(t, c.Call(t.Context(), name, nil, nil), tt.code)
		if e.Message != tt.text || !errors.Is(e, api.E(tt.code, "any")) {
			t.Errorf("%s: %+v", name, e)
		}
		if want := new(api.Error); errors.As(tt.err, &want) && name != "no JSON" {
			if d := cmp.Diff([]any{want.Retryable, want.Next, want.Fields, want.Data}, []any{e.Retryable, e.Next, e.Fields, e.Data}); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

// X29 wants exactly these members.
func TestAccessDeniedIsExact(t *testing.T) {
	p := raw(t, &Server{Handler: HandlerFunc(func(_ context.Context, _ *Peer, m string, _ json.RawMessage) (any, error) {
		return nil, &api.Error{Code: api.CodeAccess, Message: "not authorized for " + m, Data: map[string]any{"method": m}}
	})})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"session/list"}` + "\n")
	if d := cmp.Diff(map[string]any{"code": "access_denied", "method": "session/list"}, p.hear().Error.Data); d != "" {
		t.Error(d)
	}
}

func TestPanicIsAnErrorOfItsRequestAlone(t *testing.T) {
	logged := make(chan string, 1)
	c := client(t, &Server{
		Handler: HandlerFunc(func(_ context.Context, _ *Peer, method string, _ json.RawMessage) (any, error) {
			if method == "panic" {
				panic("oh no")
			}
			return 1, nil
		}),
		Log: func(format string, args ...any) { logged <- fmt.Sprintf(format, args...) },
	})
	e := typed(t, c.Call(t.Context(), "panic", nil, nil), api.CodeInternal)
	if got := <-logged; !strings.Contains(got, "oh no") || !strings.Contains(got, "serve_test.go") {
		t.Errorf("log %q names no place", got)
	}
	if strings.Contains(e.Message, ".go") {
		t.Errorf("the peer was told our stack: %s", e.Message)
	}
	if err := c.Call(t.Context(), "fine", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestParametersAbsentOrNullAreEmpty(t *testing.T) {
	p := raw(t, &Server{Handler: echo})
	for _, params := range []string{``, `,"params":null`, `,"params":{}`} {
		p.say(`{"jsonrpc":"2.0","id":1,"method":"echo"` + params + "}\n")
		if m := p.hear(); string(m.Result) != "{}" {
			t.Errorf("params %q: result %s", params, m.Result)
		}
	}
}

func TestAnswerOverTheLimitIsAnError(t *testing.T) {
	c := client(t, &Server{Handler: HandlerFunc(func(_ context.Context, _ *Peer, m string, _ json.RawMessage) (any, error) {
		return map[string]any{"long": strings.Repeat("x", MaxLine), "no JSON": func() {}}[m], nil
	})})
	typed(t, c.Call(t.Context(), "long", nil, nil), api.CodeInternal)
	typed(t, c.Call(t.Context(), "no JSON", nil, nil), api.CodeInternal)
	if err := c.Call(t.Context(), "fine", nil, nil); err != nil {
		t.Error(err)
	}
}

func TestPipelined1000CallsAreBoundedAndAnsweredUnderTheirIds(t *testing.T) {
	var now, most atomic.Int32
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	p := raw(t, &Server{Handler: HandlerFunc(func(ctx context.Context, _ *Peer, _ string, params json.RawMessage) (any, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == MaxInFlight {
			fill()
		}
		<-full // nobody ends before as many run as may
		return params, nil
	})})
	go func() {
		for i := range 1000 {
			fmt.Fprintf(p.Conn, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":[%d]}`+"\n", i, i)
		}
	}()
	seen := map[string]bool{}
	for range 1000 {
		m := p.hear()
		if "["+string(m.ID)+"]" != string(m.Result) || seen[string(m.ID)] {
			t.Fatalf("id %s answered with %s", m.ID, m.Result)
		}
		seen[string(m.ID)] = true
	}
	if most.Load() != MaxInFlight {
		t.Errorf("%d at once, want %d", most.Load(), MaxInFlight)
	}
}

// hang says when a request begins and waits for its end.
func hang(began chan<- string) HandlerFunc {
	return func(ctx context.Context, _ *Peer, method string, _ json.RawMessage) (any, error) {
		if method == "echo" {
			return []string{"yes"}, nil
		}
		began <- method
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func TestCancelEndsOneRequest(t *testing.T) {
	began := make(chan string, 2)
	p := raw(t, &Server{Handler: hang(began)})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"a"}`+"\n", `{"jsonrpc":"2.0","id":"1","method":"b"}`+"\n")
	<-began
	<-began
	p.say(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"nobody"}}`+"\n",
		`{"jsonrpc":"2.0","method":"$/cancel"}`+"\n",
		`{"jsonrpc":"2.0","id":9,"method":"$/cancel","params":{"id":"1"}}`+"\n")
	for range 2 { // in any order
		switch m := p.hear(); string(m.ID) {
		case `9`:
		case `"1"`:
			if m.Error == nil || m.Error.Code != api.CodeAbandoned.Wire() {
				t.Errorf("%+v", m.Error)
			}
		default:
			t.Errorf("heard id %s", m.ID)
		}
	}
	p.say(`{"jsonrpc":"2.0","id":1,"method":"again"}` + "\n")
	p.refused("1", api.CodeRequest) // in flight still
	p.alive()
}

func TestRequestsEndWithTheConnection(t *testing.T) {
	began := make(chan string, 1)
	conn, served := serve(t, &Server{Handler: hang(began)})
	io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"a"}`+"\n")
	<-began
	conn.Close()
	<-served
}

// Nobody reads then: that the peer is gone has to be found out otherwise.
func TestRequestsEndWithTheConnectionThoughNoneIsRead(t *testing.T) {
	began := make(chan string, MaxInFlight)
	conn, served := serve(t, &Server{Handler: hang(began)})
	for i := range MaxInFlight + 10 {
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"a"}`+"\n", i)
	}
	for range MaxInFlight {
		<-began
	}
	conn.Close()
	<-served
}

func TestC6_EndOfServingIsTold(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	began := make(chan string, 1)
	conn, served := serveContext(ctx, t, &Server{Handler: hang(began)})
	c := NewClient(conn, nil)
	done := make(chan error)
	go func() { done <- c.Call(context.Background(), "a", nil, nil) }()
	<-began
	stop()
	e := typed(t, <-done, api.CodeUnreachable)
	<-served
	<-c.Done()
	if code, reason := c.Reason(); code != CloseGoing || !strings.Contains(e.Message, reason) {
		t.Errorf("reason %d %q, error %v", code, reason, e)
	}
}

func TestC6_CloseFollowsWhatWasQueued(t *testing.T) {
	p := raw(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
		for i := range 100 {
			if err := p.Notify("event", i); err != nil {
				return nil, err
			}
		}
		p.Close(CloseProtocol, "another version")
		p.Close(CloseHello, "too late")
		if err := p.Notify("event", nil); !errors.Is(err, ErrGone) {
			t.Errorf("notify after close: %v", err)
		}
		return 1, nil
	})})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n")
	for i := range 100 {
		if m := p.hear(); m.Method != "event" || string(m.Params) != fmt.Sprint(i) {
			t.Fatalf("%d: heard %+v", i, m)
		}
	}
	p.closed(CloseProtocol)
}

func TestC7_AnswersAndNotificationsKeepTheirOrder(t *testing.T) {
	p := raw(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, params json.RawMessage) (any, error) {
		return params, p.Notify("event", params)
	})})
	for range 200 {
		p.say(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}` + "\n")
		if m := p.hear(); m.Method != "event" {
			t.Fatalf("heard %+v before the notification", m)
		}
		if m := p.hear(); string(m.ID) != "1" {
			t.Fatalf("heard %+v", m)
		}
	}
}

func TestC4_NoHelloInTimeCloses4001(t *testing.T) {
	fire := make(chan func(), 1)
	p := raw(t, &Server{Handler: echo, Hello: 15 * time.Second, After: func(d time.Duration, f func()) func() bool {
		if d != 15*time.Second {
			t.Errorf("armed for %s", d)
		}
		fire <- f
		return func() bool { return true }
	}})
	p.alive() // ping is no hello
	(<-fire)()
	p.closed(CloseHelloTimeout)
}

func TestC4_GreetedPeerStays(t *testing.T) {
	fire, stopped := make(chan func(), 1), make(chan struct{})
	s := &Server{Handler: greeter, Hello: time.Hour, After: func(_ time.Duration, f func()) func() bool {
		fire <- f
		return func() bool { close(stopped); return true }
	}}
	conn, _ := serve(t, s)
	c := NewClient(conn, nil)
	if err := c.Call(t.Context(), "hello", nil, nil); err != nil {
		t.Fatal(err)
	}
	(<-fire)()
	if err := c.Call(t.Context(), "ping", nil, nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	<-stopped // C16: no timer fires afterwards
}

func TestC5_WhatFollowsTheHelloUnaskedFindsItGreeted(t *testing.T) {
	p := raw(t, &Server{Hello: time.Hour, Handler: HandlerFunc(func(_ context.Context, p *Peer, method string, _ json.RawMessage) (any, error) {
		if method == "hello" {
			return p.Greet(), nil
		}
		return p.Greeted(), nil
	})})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"hello"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"create"}` + "\n")
	for _, id := range []string{"1", "2"} {
		if m := p.hear(); string(m.ID) != id || string(m.Result) != "true" {
			t.Errorf("heard id %s, %s", m.ID, m.Result)
		}
	}
}

func TestC11_PeerThatDoesNotReadIsToldAndSlowsNobody(t *testing.T) {
	filled := make(chan int)
	slow := raw(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
		for i := 0; ; i++ {
			if err := p.Notify("event", i); errors.Is(err, ErrLagged) {
				filled <- i
				return nil, p.Send("events/lagged", i)
			} else if err != nil {
				return nil, err
			}
		}
	})})
	slow.say(`{"jsonrpc":"2.0","id":1,"method":"a"}` + "\n")
	n := <-filled // it came back though nobody reads
	fast := raw(t, &Server{Handler: echo})
	fast.alive()
	for i := range n {
		if m := slow.hear(); string(m.Params) != fmt.Sprint(i) {
			t.Fatalf("event %s, want %d", m.Params, i)
		}
	}
	if m := slow.hear(); m.Method != "events/lagged" || string(m.Params) != fmt.Sprint(n) {
		t.Errorf("heard %+v", m)
	}
	if m := slow.hear(); string(m.ID) != "1" {
		t.Errorf("heard %+v", m)
	}
}

func TestC11_QueueIsBoundedInBytes(t *testing.T) {
	got := make(chan int, 1)
	long := strings.Repeat("x", 3<<20)
	conn, served := serve(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
		for i := 0; ; i++ {
			if err := p.Notify("event", long); err != nil {
				got <- i
				return nil, err
			}
		}
	})})
	io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"a"}`+"\n")
	if n := <-got; n == 0 || n > 1+MaxQueueBytes/len(long) {
		t.Errorf("%d notifications of 3 MiB were taken", n)
	}
	conn.Close()
	<-served
}

func TestPeerThatNeverReadsLosesItsConnection(t *testing.T) {
	conn, served := serve(t, &Server{writeTimeout: time.Millisecond, Handler: HandlerFunc(
		func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
			for {
				if err := p.Send("event", strings.Repeat("x", 1<<16)); err != nil {
					return nil, err
				}
			}
		})})
	io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"a"}`+"\n")
	<-served
}

func TestPeerKnowsItsUserAndKeepsAValue(t *testing.T) {
	c := client(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
		old := p.Value()
		p.SetValue("mine")
		return []any{p.UID(), old}, nil
	})})
	for _, want := range []any{nil, "mine"} {
		var got []any
		if err := c.Call(t.Context(), "a", nil, &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]any{float64(os.Geteuid()), want}, got); d != "" {
			t.Error(d)
		}
	}
}

func TestWhoIsNotOnASocketIsNotServed(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	if err := Serve(t.Context(), a, echo); !errors.Is(err, ErrForeign) {
		t.Errorf("error %v", err)
	}
	if _, err := b.Write([]byte("x")); err == nil {
		t.Error("something was read")
	}
}

// pair is a connected pair of Unix sockets.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := [2]net.Conn{}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if conns[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	return conns[0], conns[1]
}

// Whatever comes, the server answers the request behind it or closes.
func FuzzServeLines(f *testing.F) {
	for _, seed := range []string{
		"", "garbage", "{", "[]", "null", "\x00\x00\x00\x00\x02ab", "\x00\xff\xff\xff\xff", `{"jsonrpc":"2.0","id":1,"method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"method":"panic"}`, `{"jsonrpc":"2.0","id":1,"Method":"x","result":null}`,
		`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":"end"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`,
		`{"jsonrpc":"2.0","id":"end","method":"close"}`, `{"jsonrpc":"2.0","id":"\ud800","method":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	h := HandlerFunc(func(_ context.Context, p *Peer, method string, params json.RawMessage) (any, error) {
		switch method {
		case "panic":
			panic(method)
		case "close":
			p.Close(CloseGoing, "asked for")
		case "greet":
			p.Greet()
		}
		return params, p.Notify(method, params)
	})
	f.Fuzz(func(t *testing.T, input []byte) {
		ours, theirs := pair(t)
		var both sync.WaitGroup
		both.Go(func() {
			s := &Server{Handler: h, Log: func(string, ...any) {}}
			if err := s.Serve(t.Context(), theirs); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			_, err := ours.Write(append(input, "\n"+`{"jsonrpc":"2.0","id":"end","method":"ping"}`+"\n"...))
			if err == nil && strings.Contains(string(input), "\x00") {
				ours.(*net.UnixConn).CloseWrite() // it may be waiting for the rest of a frame
			}
		})
		untilAnswered(t, ours)
		ours.Close()
		both.Wait()
	})
}

func untilAnswered(t *testing.T, conn net.Conn) {
	for d := json.NewDecoder(conn); ; {
		var m map[string]any
		switch err := d.Decode(&m); {
		case errors.As(err, new(*json.SyntaxError)), errors.As(err, new(*json.UnmarshalTypeError)):
			t.Fatalf("heard no JSON object: %v", err)
		case err != nil:
			return // closed
		case m["jsonrpc"] != "2.0":
			t.Fatalf("heard %v", m)
		case m["id"] == "end":
			return
		}
	}
}
