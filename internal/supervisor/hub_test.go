package supervisor

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
)

// wireShim is a shim's end of the wire: what it is told comes out of told, one word a message, and it says what the test
// has it say.
type wireShim struct {
	t    *testing.T
	conn net.Conn
	told chan string
}

func (w *wireShim) serve() {
	in := bufio.NewReader(w.conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			close(w.told)
			return
		}
		var m struct {
			M, Op   string
			Out, At int64
			Sig     int
		}
		_ = json.Unmarshal(line, &m)
		switch m.M {
		case "hello":
			w.say(`{"m":"hello","version":1,"agent":{"state":"running"}}`)
		case "write":
			w.told <- "write " + m.Op
		case "ack":
			w.told <- fmt.Sprint("ack ", m.Out)
		case "deadline":
			w.told <- fmt.Sprint("deadline ", m.At)
		case "signal":
			w.told <- fmt.Sprint("signal ", m.Sig)
		default:
			w.told <- m.M
		}
	}
}

func (w *wireShim) say(line string) { _, _ = io.WriteString(w.conn, line+"\n") }

func (w *wireShim) wants(want ...string) {
	w.t.Helper()
	for _, words := range want {
		select {
		case got := <-w.told:
			if got != words {
				w.t.Errorf("the shim was told %q, want %q", got, words)
			}
		case <-time.After(10 * time.Second):
			w.t.Fatalf("the shim was not told %q", words)
		}
	}
}

// seatsOf is a hub with a member for each name, all seated, and the shim behind it.
func seatsOf(t *testing.T, names ...string) (*hub, *wireShim, map[string]*seat) {
	t.Helper()
	ours, theirs := net.Pipe()
	w := &wireShim{t: t, conn: theirs, told: make(chan string, 100)}
	go w.serve()
	c, err := shim.Adopt(ours, 1)
	if err != nil {
		t.Fatal(err)
	}
	h, leave := stand(t).hubOf("x-1")
	seats := map[string]*seat{}
	h.mu.Lock()
	h.connect(c, 0)
	for _, name := range names {
		seats[name], _ = h.seated(name, "run of "+name, func() {})
	}
	h.mu.Unlock()
	t.Cleanup(func() {
		for _, s := range seats {
			s.Close()
		}
		leave()
	})
	return h, w, seats
}

// heard is the next event of a seat.
func heard(t *testing.T, s *seat) shim.Event {
	t.Helper()
	select {
	case ev, ok := <-s.Events():
		if !ok {
			t.Fatalf("%s: the connection is gone", s.session)
		}
		return ev
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: no event", s.session)
	}
	return shim.Event{}
}

// The shim has one frame to write at a time; each member has its answer, and none has two before another's.
func TestShareWritesInTurn(t *testing.T) {
	_, w, seats := seatsOf(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		_ = seats[name].Write(name+".0", 0, []byte("x"))
	}
	w.wants("write a.0")
	w.say(`{"m":"written","op":"a.0"}`)
	if ev := heard(t, seats["a"]); ev.Written == nil || ev.Written.Op != "a.0" {
		t.Errorf("a heard %+v", ev)
	}
	_ = seats["a"].Write("a.1", 0, []byte("x"))
	seats["c"].Close() // what it had not written is nobody's
	for _, op := range []string{"b.0", "a.1"} {
		w.wants("write " + op)
		w.say(`{"m":"written","op":"` + op + `"}`)
	}
	if ev := heard(t, seats["b"]); ev.Written == nil || ev.Written.Op != "b.0" {
		t.Errorf("b heard %+v", ev)
	}
}

// What one member has not taken in is not dropped, also of one that nobody follows the process for.
func TestShareDropsWhatAllHave(t *testing.T) {
	h, w, seats := seatsOf(t, "a", "b")
	w.say(`{"m":"data","out":100}`)
	for _, s := range seats {
		if ev := heard(t, s); ev.Out != 100 {
			t.Errorf("%s heard %+v", s.session, ev)
		}
	}
	_ = seats["a"].Ack(90, 0)
	w.wants("ack 0")
	_ = seats["b"].Ack(60, 0)
	w.wants("ack 60")
	seats["b"].Close()
	_ = seats["a"].Ack(100, 0)
	w.wants("ack 60")
	h.mu.Lock()
	delete(h.members, "b")
	_ = h.ack()
	h.mu.Unlock()
	w.wants("ack 100")
}

// The shim ends the process by itself at the last deadline of its members, and never while one has none.
func TestShareDeadlineIsTheLast(t *testing.T) {
	_, w, seats := seatsOf(t, "a", "b")
	_ = seats["a"].Deadline(50)
	w.wants("deadline 0")
	_ = seats["b"].Deadline(70)
	w.wants("deadline 70")
	_ = seats["a"].Deadline(60) // nothing changes
	_ = seats["b"].Deadline(0)
	w.wants("deadline 0")
}

// Of two that leave at once the second finds itself alone, and nobody comes any more.
func TestShareLastOneCloses(t *testing.T) {
	h, _, seats := seatsOf(t, "a", "b")
	if seats["a"].alone() {
		t.Error("a is alone beside b")
	}
	if h.isShut() || !seats["b"].alone() || !h.isShut() {
		t.Error("b is not the last one")
	}
}

// The end of the process is told to all, and those for whose sake it was not ended know that.
func TestShareEndIsEverybodys(t *testing.T) {
	h, w, seats := seatsOf(t, "a", "b")
	_ = seats["a"].End()
	w.wants("end")
	w.say(`{"m":"exit","exit":{"code":0,"out":7}}`)
	for name, s := range seats {
		if ev := heard(t, s); ev.Exit == nil || ev.Exit.Out != 7 {
			t.Errorf("%s heard %+v", name, ev)
		}
	}
	if seats["a"].endedByOther() || !seats["b"].endedByOther() || !h.isShut() {
		t.Error("it was not ended by a")
	}
	_ = w.conn.Close()
	for name, s := range seats {
		if ev, ok := <-s.Events(); ok {
			t.Errorf("%s heard %+v after the end", name, ev)
		}
	}
}

// A process serves what would start an equal one. The directory matters where the conversation does not state its own.
func TestShareFits(t *testing.T) {
	has := offer{controller: "local", provider: "codex", program: record.Program{Path: "/bin/codex"}, args: []string{"-c"}, umask: 18, vars: map[string]string{"A": "1"}}
	tests := map[string]struct {
		change func(*offer)
		want   bool
	}{
		"equal":           {func(*offer) {}, true},
		"controller":      {func(o *offer) { o.controller = "grant" }, false},
		"provider":        {func(o *offer) { o.provider = "other" }, false},
		"program":         {func(o *offer) { o.program.Path = "/opt/codex" }, false},
		"kind":            {func(o *offer) { o.program.Kind = "acp" }, false},
		"its words":       {func(o *offer) { o.program.Words = []string{"-x"} }, false},
		"more words":      {func(o *offer) { o.program.More = []string{"-x"} }, false},
		"args":            {func(o *offer) { o.args = nil }, false},
		"options":         {func(o *offer) { o.options = map[string]string{"a": "b"} }, false},
		"umask":           {func(o *offer) { o.umask = 63 }, false},
		"environment":     {func(o *offer) { o.vars = map[string]string{"A": "2"} }, false},
		"its directory":   {func(o *offer) { o.dir = "/work" }, true},
		"another's":       {func(o *offer) { o.dir = "/elsewhere" }, false},
		"one more of env": {func(o *offer) { o.vars = map[string]string{"A": "1", "B": ""} }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := has
			want.args = slices.Clone(has.args)
			tt.change(&want)
			if diff := cmp.Diff(tt.want, (&hub{offer: &has, cwd: "/work"}).fits(&want)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if (&hub{}).fits(&has) {
		t.Error("one that takes nobody fits")
	}
}
