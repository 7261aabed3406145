package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/rpc/api"
)

func TestCallsRunConcurrently(t *testing.T) {
	var met sync.WaitGroup
	met.Add(MaxInFlight)
	c := client(t, &Server{Handler: HandlerFunc(func(_ context.Context, _ *Peer, _ string, params json.RawMessage) (any, error) {
		met.Done()
		met.Wait()
		return params, nil
	})})
	var calls sync.WaitGroup
	for i := range MaxInFlight {
		calls.Go(func() {
			var got []int
			if err := c.Call(context.Background(), "echo", []int{i}, &got); err != nil || !cmp.Equal(got, []int{i}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	calls.Wait()
}

func TestCallTextArrivesByteForByte(t *testing.T) {
	c := client(t, &Server{Handler: echo})
	want := []string{"-x", "a\nb\r\n", "\"'`", "<&>", "\u2028\u2029", "\x00\x1f", strings.Repeat("é", 1<<19)}
	var got []string
	if err := c.Call(t.Context(), "echo", want, &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
}

func TestCallEndsWithItsContextAndTellsThePeer(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	c := client(t, &Server{Handler: HandlerFunc(func(ctx context.Context, _ *Peer, method string, _ json.RawMessage) (any, error) {
		if method == "wait" {
			close(began)
			<-ctx.Done()
			ended <- ctx.Err()
		}
		return nil, nil
	})})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if err := c.Call(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-ended
	if err := c.Call(t.Context(), "other", nil, nil); err != nil {
		t.Error(err)
	}
	if err := c.Call(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("call with an ended context: %v", err)
	}
}

// A frozen supervisor reads nothing.
func TestCallEndsWithItsContextWhileWriting(t *testing.T) {
	ours, theirs := pair(t)
	defer theirs.Close()
	c := NewClient(ours, nil)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // it is in the midst of its line once a byte of it is there
		_, _ = theirs.Read(make([]byte, 1))
		cancel()
	}()
	if err := c.Call(ctx, "a", strings.Repeat("x", 3<<20), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	typed(t, c.Call(t.Context(), "b", nil, nil), api.CodeUnreachable) // nothing can follow half a line
}

func TestCallThatCannotBeSentBreaksNothing(t *testing.T) {
	c := client(t, &Server{Handler: echo})
	typed(t, c.Call(t.Context(), "echo", strings.Repeat("x", MaxLine), nil), api.CodeParams)
	typed(t, c.Call(t.Context(), "echo", func() {}, nil), api.CodeParams)
	var number int
	typed(t, c.Call(t.Context(), "echo", "text", &number), api.CodeInternal)
	if err := c.Call(t.Context(), "echo", 5, &number); err != nil || number != 5 {
		t.Errorf("%d, %v", number, err)
	}
}

func TestNotificationsComeInOrder(t *testing.T) {
	conn, _ := serve(t, &Server{Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
		for i := range 500 {
			if err := p.Notify("n", i); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})})
	var got []string
	c := NewClient(conn, func(method string, params json.RawMessage) { got = append(got, method+string(params)) })
	if err := c.Call(t.Context(), "a", nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(got) != 500 || got[0] != "n0" || got[499] != "n499" {
		t.Errorf("got %d: %v", len(got), got)
	}
}

func TestClientNotificationsAreHandled(t *testing.T) {
	got := make(chan string, 1)
	c := client(t, &Server{Handler: HandlerFunc(func(_ context.Context, _ *Peer, method string, params json.RawMessage) (any, error) {
		got <- method + string(params)
		return nil, errors.New("goes nowhere")
	})})
	if err := c.Notify(t.Context(), "n", []int{1}); err != nil {
		t.Fatal(err)
	}
	if g := <-got; g != "n[1]" {
		t.Errorf("got %s", g)
	}
}

func TestBrokenConnectionIsUnreachable(t *testing.T) {
	ours, theirs := pair(t)
	c := NewClient(ours, nil)
	go func() {
		_, _ = bufio.NewReader(theirs).ReadString('\n')
		theirs.Close()
	}()
	typed(t, c.Call(t.Context(), "a", nil, nil), api.CodeUnreachable)
	<-c.Done()
	err := c.Call(t.Context(), "a", nil, nil)
	if typed(t, err, api.CodeUnreachable); !errors.Is(err, ErrGone) || api.ExitOf(err) != 12 {
		t.Errorf("error %v, exit %d", err, api.ExitOf(err))
	}
}

// The peer closed before the call: writing fails, but the reason lies there to be read.
func TestReasonForClosingIsToldToALateCall(t *testing.T) {
	ours, theirs := pair(t)
	io.WriteString(theirs, `{"jsonrpc":"2.0","method":"connection/closing","params":{"code":4003,"reason":"old"}}`+"\n")
	theirs.Close()
	c := NewClient(ours, nil)
	e := typed(t, c.Call(t.Context(), "a", nil, nil), api.CodeUnreachable)
	if code, _ := c.Reason(); code != CloseProtocol || !strings.Contains(e.Message, "4003") {
		t.Errorf("reason %d, error %v", code, e)
	}
}

func TestClientLeavesAServerThatTalksRubbish(t *testing.T) {
	for _, line := range []string{"rubbish\n", "[]\n", "\x00\x00\x00\x00\x00"} {
		ours, theirs := pair(t)
		c := NewClient(ours, nil)
		go func() { io.WriteString(theirs, line) }()
		<-c.Done()
		if rest, _ := io.ReadAll(theirs); len(rest) > 0 {
			t.Errorf("%q was answered with %q", line, rest)
		}
		theirs.Close()
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	c := client(b, &Server{Handler: echo})
	params := map[string]string{"id": "nightly-review"}
	for b.Loop() {
		var got map[string]string
		if err := c.Call(b.Context(), "echo", params, &got); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRoundTrip100KB(b *testing.B) {
	c := client(b, &Server{Handler: echo})
	params := strings.Repeat("x", 100_000)
	for b.Loop() {
		var got string
		if err := c.Call(b.Context(), "echo", params, &got); err != nil {
			b.Fatal(err)
		}
	}
}

// What a verb pays: dial, three calls, close.
func BenchmarkVerb(b *testing.B) {
	dir, err := SocketDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	l, err := Listen(dir + "/s")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go Serve(context.Background(), conn, echo)
		}
	}()
	for b.Loop() {
		conn, err := DialSocket(b.Context(), dir+"/s")
		if err != nil {
			b.Fatal(err)
		}
		c := NewClient(conn, nil)
		for range 3 {
			if err := c.Call(b.Context(), "echo", nil, nil); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
	}
}
