package testscripts

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// A client finds itself again with the next supervisor, whether the last one was killed or left. Its token is nowhere on
// disk, and who has another one is refused (C1, C5).
func TestC1_ClientSurvivesTheSupervisor(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	token, epoch := "", int64(0)
	for i, ending := range []func(){
		func() { s.signal("supervise", syscall.SIGKILL) },
		func() { s.signal("supervise", syscall.SIGTERM) },
		func() {},
	} {
		w := dialWire(t, s.serving())
		was := w.welcome(token)
		if was.Resumed != (i > 0) || i > 0 && was.ResumeToken != token || was.Epoch <= epoch {
			t.Errorf("supervisor %d welcomes it as %+v", i, was)
		}
		token, epoch = was.ResumeToken, was.Epoch
		ending()
	}
	w := dialWire(t, s.serving())
	w.say(greeting(strings.Repeat("0", len(token))))
	if said, err := io.ReadAll(w.in); err != nil || !strings.Contains(string(said), `"code":4401`) {
		t.Errorf("with another token: %s, %v", said, err)
	}
	if w = dialWire(t, s.serving()); !w.welcome(token).Resumed {
		t.Error("it was disturbed")
	}
	file := s.client() // the verbs, which do not come back, have none
	if s.holds("", token) {
		t.Error("its token is on disk")
	}
	w.say(`{"jsonrpc":"2.0","method":"goodbye"}`)
	if _, err := io.ReadAll(w.in); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.home, file)); !os.IsNotExist(err) {
		t.Errorf("behind its goodbye: %v", err)
	}
	s.quiet()
}

// The id of a client whose record cannot be read is refused; doctor names the record, and what it says can be done is true.
func TestC5_UnreadableClientIsNamedByDoctor(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	token := dialWire(t, s.serving()).welcome("").ResumeToken
	s.signal("supervise", syscall.SIGKILL)
	s.damage(s.client(), func(string) string { return `{"version":1,"id":"edi` })
	w := dialWire(t, s.serving())
	w.say(greeting(token))
	if _, answers := w.hear(1); answers["0"].Error == nil || answers["0"].Error.Data.Code != api.CodeCorrupt {
		t.Errorf("answered %+v", answers["0"])
	}
	out, _ := s.verb("doctor")
	if !strings.Contains(out, "client: "+s.client()+": record is damaged") || !strings.Contains(out, "fix: put a good one back, or") {
		t.Errorf("doctor said %s", out)
	}
	if err := os.Remove(filepath.Join(s.home, s.client())); err != nil {
		t.Fatal(err)
	}
	if dialWire(t, s.serving()).welcome(token).Resumed {
		t.Error("it was given back")
	}
	s.quiet()
}

// client is the one record of a client.
func (s *stage) client() string {
	s.t.Helper()
	found, _ := fs.Glob(os.DirFS(s.home), "clients/*.json")
	if len(found) != 1 {
		s.t.Fatalf("records of clients: %v", found)
	}
	return found[0]
}

// greeting is a hello of the client that these tests are.
func greeting(token string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"hello","params":{"protocol":1,"client":"editor","version":"0","resumeToken":%q}}`, token)
}

func (w *wire) welcome(token string) (got api.Welcome) {
	w.t.Helper()
	w.say(greeting(token))
	_, answers := w.hear(1)
	if a := answers["0"]; json.Unmarshal(a.Result, &got) != nil || got.ResumeToken == "" {
		w.t.Fatalf("hello is answered %+v", a)
	}
	return got
}
