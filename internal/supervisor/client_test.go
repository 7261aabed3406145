package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// reception is a supervisor that serves real connections, with a clock that is set by hand.
type reception struct {
	*Supervisor
	t      *testing.T
	clock  *handClock
	socket string
	left   chan struct{} // a connection is served no more
}

func receive(t *testing.T) *reception {
	t.Helper()
	s := stand(t)
	clock := newHandClock()
	s.clients.clock = clock
	dir, err := rpc.SocketDir(s.dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	v := &reception{s, t, clock, filepath.Join(dir, "supervisor.sock"), make(chan struct{}, 100)}
	listener, err := rpc.Listen(v.socket)
	if err != nil {
		t.Fatal(err)
	}
	s.work.Go(func() { v.accept(listener) })
	t.Cleanup(func() {
		s.leave()
		listener.Close()
		s.work.Wait()
	})
	return v
}

func (v *reception) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		v.work.Go(func() { v.serveConn(conn); v.left <- struct{}{} })
	}
}

// ids are the clients that there are.
func (v *reception) ids() []string {
	v.clients.mu.Lock()
	defer v.clients.mu.Unlock()
	return slices.Sorted(maps.Keys(v.clients.byID))
}

// spoken is a message as it comes over the wire.
type spoken struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Data struct {
			Code api.Code `json:"code"`
		} `json:"data"`
	} `json:"error"`
}

// caller is a connection, spoken by hand.
type caller struct {
	v    *reception
	conn net.Conn
	in   *bufio.Reader
}

func (v *reception) dial() *caller {
	v.t.Helper()
	conn, err := rpc.Dial(v.t.Context(), v.socket)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { conn.Close() })
	return &caller{v, conn, bufio.NewReader(conn)}
}

func (c *caller) say(lines ...string) {
	c.v.t.Helper()
	if _, err := io.WriteString(c.conn, strings.Join(lines, "\n")+"\n"); err != nil {
		c.v.t.Fatal(err)
	}
}

func (c *caller) hear() (m spoken) {
	c.v.t.Helper()
	line, err := c.in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		c.v.t.Fatalf("hear %q: %v", line, err)
	}
	return m
}

// closed wants nothing but connection/closing with the code, and the end.
func (c *caller) closed(code int) {
	c.v.t.Helper()
	m := c.hear()
	var why api.Closing
	if m.Method != api.NotifyClosing || json.Unmarshal(m.Params, &why) != nil || why.Code != code || why.Reason == "" {
		c.v.t.Errorf("heard %+v %s, want closing %d", m, m.Params, code)
	}
	if rest, _ := io.ReadAll(c.in); len(rest) > 0 {
		c.v.t.Errorf("behind the closing: %q", rest)
	}
	<-c.v.left
}

// hang ends the connection, and returns when the supervisor has seen it.
func (c *caller) hang() {
	c.conn.Close()
	<-c.v.left
}

// silent wants nothing to have come behind what was heard.
func (c *caller) silent() {
	c.v.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":"still","method":"ping"}`)
	if m := c.hear(); string(m.ID) != `"still"` {
		c.v.t.Errorf("heard %+v %s unasked", m, m.Params)
	}
}

// hello is a line that says hello as a client, with more members.
func helloLine(id, more string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"` + id + `","version":"0"` + more + `}}`
}

// welcome dials and says hello, and hears what belongs to it.
func (v *reception) welcome(id, more string) (*caller, api.Welcome) {
	v.t.Helper()
	c := v.dial()
	c.say(helloLine(id, more))
	var w api.Welcome
	if m := c.hear(); json.Unmarshal(m.Result, &w) != nil || w.ResumeToken == "" {
		v.t.Fatalf("hello of %s is answered %+v", id, m)
	}
	var info api.Server
	if m := c.hear(); m.Method != api.NotifyServer || json.Unmarshal(m.Params, &info) != nil || info.Resumed != w.Resumed {
		v.t.Fatalf("the first message behind the answer is %+v %s", m, m.Params)
	}
	return c, w
}

// with is the member of a hello that resumes.
func with(token string) string { return `,"resumeToken":"` + token + `"` }

// waits is a wait for an execution that does not end, under an id; it is pending when this returns.
func (c *caller) waits(id string) {
	c.v.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"execution/wait","params":{"id":"k"}}`)
	c.silent() // what was sent before has begun
}

// direct → direct: who comes back in time is the same client, and afterwards its id is a new one's.
func TestC1_ReconnectOverTheSocket(t *testing.T) {
	v := receive(t)
	c, w := v.welcome("a", "")
	was := v.clients.of(v.clients.peersOf("a")[0])
	c.hang()
	v.clock.advance(90*time.Second - 1)
	c, again := v.welcome("a", with(w.ResumeToken))
	if !again.Resumed || again.ResumeToken != w.ResumeToken || v.clients.of(v.clients.peersOf("a")[0]) != was {
		t.Errorf("welcomed as %+v", again)
	}
	c.silent()
	c.hang()
	v.clock.advance(90 * time.Second)
	if _, again := v.welcome("a", with(w.ResumeToken)); again.Resumed || again.ResumeToken == w.ResumeToken {
		t.Errorf("after the grace: %+v", again)
	}
}

// A client without grace is gone with its connection; a hello says how long, and is told what counts.
func TestC1_GraceOverTheSocket(t *testing.T) {
	v := receive(t)
	c, _ := v.welcome("a", `,"graceMs":0`)
	c.hang()
	if _, w := v.welcome("a", `,"graceMs":99999999999`); w.Resumed || w.GraceMs != 86_400_000 {
		t.Errorf("welcomed as %+v", w)
	}
	c = v.dial()
	c.say(helloLine("b", `,"graceMs":-1`))
	if m := c.hear(); m.Error == nil || m.Error.Data.Code != api.CodeParams {
		t.Errorf("a negative time is answered %+v", m)
	}
}

// What the client is told, both connections are told; an answer is its asker's alone.
func TestC2_NotificationsReachBothConnections(t *testing.T) {
	v := receive(t)
	first, w := v.welcome("a", "")
	second, _ := v.welcome("a", with(w.ResumeToken))
	other, _ := v.welcome("b", "")
	for _, p := range v.clients.peersOf("a") {
		if err := p.Notify("event", nil); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*caller{first, second} {
		if m := c.hear(); m.Method != "event" {
			t.Errorf("heard %+v", m)
		}
	}
	first.silent() // it has its own answer and second has none of it
	second.silent()
	other.silent()
	first.hang()
	v.clock.advance(time.Hour)
	second.silent()
	second.hang()
	if connected, until, live := v.clients.state("a"); connected || !live || until != v.clock.Now().Add(90*time.Second) {
		t.Errorf("connected %v, live %v, until %v", connected, live, until)
	}
}

func TestC3_CapabilitiesOverTheSocket(t *testing.T) {
	v := receive(t)
	token := ""
	for _, sent := range []string{`{"a":[1,{"b":null}],"big":12345678901234567890}`, `{}`} {
		_, w := v.welcome("a", with(token)+`,"capabilities":`+sent)
		token = w.ResumeToken
		v.clients.mu.Lock()
		got := v.clients.byID["a"].capabilities
		v.clients.mu.Unlock()
		if string(got) != sent {
			t.Errorf("capabilities %s, want %s", got, sent)
		}
	}
}

func TestC5_HelloThatIsRefused(t *testing.T) {
	v := receive(t)
	live, w := v.welcome("live", "")
	closing := []struct {
		name string
		code int
		say  string
	}{
		{"something else first", rpc.CloseHello, `{"jsonrpc":"2.0","id":1,"method":"execution/list"}`},
		{"goodbye first", rpc.CloseHello, `{"jsonrpc":"2.0","method":"goodbye"}`},
		{"blank id", rpc.CloseHello, helloLine(" ", "")},
		{"long id", rpc.CloseHello, helloLine(strings.Repeat("x", 201), "")},
		{"control character", rpc.CloseHello, helloLine(`a\u001b[2J`, "")},
		{"another version", rpc.CloseProtocol, strings.Replace(helloLine("new", ""), `"protocol":1`, `"protocol":2`, 1)},
		{"no token", rpc.CloseToken, helloLine("live", "")},
		{"wrong token", rpc.CloseToken, helloLine("live", with(strings.Repeat("0", 64)))},
		{"wrong token without grace", rpc.CloseToken, helloLine("live", with("x")+`,"graceMs":0`)},
	}
	for _, tt := range closing {
		c := v.dial()
		c.say(tt.say)
		if c.closed(tt.code); t.Failed() {
			t.Fatal(tt.name)
		}
	}
	live.silent()
	if diff := cmp.Diff([]string{"live"}, v.ids()); diff != "" {
		t.Errorf("clients (-want +got):\n%s", diff)
	}
	if _, again := v.welcome("live", with(w.ResumeToken)); !again.Resumed {
		t.Errorf("welcomed as %+v", again)
	}
	live.say(helloLine("live", with(w.ResumeToken))) // a second one on its connection
	live.closed(rpc.CloseHello)
}

// A client whose record cannot be read is refused, and the connection may say another hello.
func TestC5_UnreadableClientOverTheSocket(t *testing.T) {
	v := receive(t)
	c, w := v.welcome("a", "")
	c.hang()
	v.clock.advance(90 * time.Second)
	files, err := filepath.Glob(v.dir.Path("clients", "*"))
	if err == nil && len(files) > 0 {
		err = errors.New("the record is still there")
	}
	if err == nil {
		err = os.WriteFile(v.dir.Path("clients", "ca978112ca1bbdcafac231b39a23dc4d.json"), []byte("{"), 0o600) // sha256("a")
	}
	if err != nil {
		t.Fatal(err)
	}
	c = v.dial()
	c.say(helloLine("a", with(w.ResumeToken)))
	if m := c.hear(); m.Error == nil || m.Error.Data.Code != api.CodeCorrupt {
		t.Errorf("answered %+v", m)
	}
	c.say(helloLine("b", ""))
	if m := c.hear(); m.Error != nil {
		t.Errorf("another one: %+v", m)
	}
}

// server/info comes first, with what it has to say, and then nothing unasked.
func TestC7_ServerInfoComesFirst(t *testing.T) {
	v := receive(t)
	v.o.Version = "1.2.3"
	c := v.dial()
	c.say(helloLine("a", ""), `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if m := c.hear(); string(m.ID) != "1" {
		t.Errorf("heard %+v", m)
	}
	m := c.hear()
	var got map[string]any
	if err := json.Unmarshal(m.Params, &got); err != nil || m.Method != api.NotifyServer {
		t.Fatalf("heard %+v, %v", m, err)
	}
	want := map[string]any{
		"version": "1.2.3", "protocol": 1.0, "server": v.dir.HomeID(), "epoch": 1.0, "resumed": false, "capabilities": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("server/info (-want +got):\n%s", diff)
	}
	if m := c.hear(); string(m.ID) != "2" {
		t.Errorf("heard %+v", m)
	}
	c.silent()
	if _, w := v.welcome("b", ""); w.Resumed || !cmp.Equal(v.ids(), []string{"a", "b"}) {
		t.Errorf("another id is welcomed as %+v; clients %v", w, v.ids())
	}
}

// goodbye ends a client at once, whatever other connections it has; what it waits for is answered, on all of them.
func TestC15_GoodbyeOverTheSocket(t *testing.T) {
	v := receive(t)
	v.slots = newSlots(1) // not open yet: nothing is begun
	v.order(t, nil)
	first, w := v.welcome("a", "")
	second, _ := v.welcome("a", with(w.ResumeToken))
	other, _ := v.welcome("b", "")
	first.waits("11")
	second.waits("22")
	other.waits("33")
	second.say(`{"jsonrpc":"2.0","method":"goodbye"}`)
	for c, id := range map[*caller]string{first: "11", second: "22"} {
		if m := c.hear(); string(m.ID) != id || m.Error == nil || m.Error.Data.Code != api.CodeClientGone {
			t.Errorf("request %s is answered %+v", id, m)
		}
		c.closed(rpc.CloseGoing)
	}
	other.silent()
	if _, again := v.welcome("a", with(w.ResumeToken)); again.Resumed {
		t.Error("it was given back")
	}
}

// The connection that says goodbye is closed when what its client held is free.
func TestC15_GoodbyeFreesFirst(t *testing.T) {
	v := receive(t)
	var freed []string
	v.clients.onGone = func(_ context.Context, id string, sessions []string) error {
		freed = append(freed, id+" "+strings.Join(sessions, " "))
		return nil
	}
	c, _ := v.welcome("a", "")
	if err := v.clients.note(t.Context(), "a", "s-1"); err != nil {
		t.Fatal(err)
	}
	c.say(`{"jsonrpc":"2.0","id":2,"method":"goodbye"}`)
	c.closed(rpc.CloseGoing)
	if !cmp.Equal(freed, []string{"a s-1"}) {
		t.Errorf("freed %v", freed)
	}
}
