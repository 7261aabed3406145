package testscripts

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// What comes over the socket is held to what pintle run is held to: a secret that only its name tells is masked, and is in no
// file.
func TestE5_SecretsOfASocketsClientByTheirNames(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	c := s.creation()
	c.Environment["OPENAI_API_KEY"], c.Environment["LC_API_KEY"], c.Environment["GIVEN"] = "sk-one-0123456789", "sk-two-0123456789", "sk-three-0123456789"
	c.Secrets = []string{"GIVEN"}
	made := call[api.Session](a, api.MethodSessCreate, c)
	for _, name := range []string{"OPENAI_API_KEY", "LC_API_KEY", "GIVEN"} {
		a.send(made.ID, "env "+name)
	}
	c.Environment["MY_TOKEN"] = "sk-four-0123456789"
	sent := call[api.Sent](a, api.MethodSessSend, api.Send{Session: made.ID, Text: "env MY_TOKEN", Environment: c.Environment})
	call[api.Execution](a, api.MethodWait, api.Wait{ID: sent.Execution})
	said := 0
	for _, e := range s.whole(made.ID) {
		if e.Type == "agent_message_chunk" && strings.Contains(string(e.Data), "it is [secret].") {
			said++
		}
	}
	if said != 4 {
		t.Errorf("%d of 4 answers are masked", said)
	}
	told := c
	told.Operation, told.AgentArgs = operation(), []string{"--key=sk-one-0123456789"}
	a.refused(api.CodeParams, api.MethodSessCreate, told)
	a.refused(api.CodeParams, api.MethodSessSend, api.Send{Session: made.ID, Text: "say sk-one-0123456789", Environment: c.Environment})
	a.detach(made.ID)
	s.quiet()
	_ = filepath.WalkDir(s.home, func(path string, _ fs.DirEntry, _ error) error {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte("sk-")) {
			t.Errorf("%s holds a secret", path)
		}
		return nil
	})
}

// What no environment can hold would be another variable than was named; a word that is none would be passed over.
func TestCreate_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	umask := -1
	for what, with := range map[string]func(*api.CreateSession){
		"a name with =":      func(c *api.CreateSession) { c.Environment["PINTLE_RUNTIME=forged"] = "x" },
		"no name":            func(c *api.CreateSession) { c.Environment[""] = "x" },
		"a NUL":              func(c *api.CreateSession) { c.Environment["A"] = "x\x00" },
		"a secret not there": func(c *api.CreateSession) { c.Secrets = []string{"ELSEWHERE"} },
		"approve":            func(c *api.CreateSession) { c.Approve = "some" },
		"unattended":         func(c *api.CreateSession) { c.Unattended = "wait" },
		"umask":              func(c *api.CreateSession) { c.Umask = &umask },
		"warmMs":             func(c *api.CreateSession) { c.WarmMs = 1 << 62 },
	} {
		c := s.creation()
		c.Environment = maps.Clone(c.Environment)
		with(&c)
		t.Log(what)
		a.refused(api.CodeParams, api.MethodSessCreate, c)
	}
	if got := s.lines("launches"); got != 0 {
		t.Errorf("%d processes were started", got)
	}
	id := a.open().ID
	for _, ms := range []int64{-1, 1 << 62} {
		a.refused(api.CodeParams, api.MethodSessSend, api.Send{Session: id, Text: "say it", TimeoutMs: ms})
	}
	a.refused(api.CodeParams, api.MethodSessSend, api.Send{Session: id, Text: "say it", Environment: map[string]string{"A=B": "x"}})
	a.detach(id)
	s.quiet()
}

// A create that was refused has no receipt. Its session is there all the same, and is not given to who asks for another one
// under the same id.
func TestF3_AFailedCreateIsNotAnother(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	c := s.creation()
	c.Path = "/bin/false"
	a.refused(api.CodeNoAgent, api.MethodSessCreate, c)
	other := c
	other.Path = ""
	a.refused(api.CodeOperationConflict, api.MethodSessCreate, other)
	a.refused(api.CodeNoAgent, api.MethodSessCreate, c)
	other.Operation = operation()
	id := call[api.Session](a, api.MethodSessCreate, other).ID
	a.detach(id)
	s.quiet()
}

// An interrupt whose answer was not waited for is repeated: it means the turn that it meant, and not the next one.
func TestF2_ARepeatedInterruptEndsOneTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.serving()
	a := s.join("a")
	id := a.open().ID
	first, second := a.post(id, "hold never"), a.post(id, "hold go")
	dir, err := state.Open(t.Context(), s.home)
	if err != nil {
		t.Fatal(err)
	}
	s.until("the first runs", func() bool { return s.lines("prompts") == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	i := api.Interrupt{Operation: operation(), Session: id}
	heard := make(chan error, 1)
	go func() { heard <- a.c.Call(ctx, api.MethodSessInterrupt, i, nil) }()
	s.until("it is on record", func() bool {
		spec, err := record.SpecOf(dir, record.FolderOf(first.Execution))
		return err == nil && spec.Desired.Cancel != nil
	})
	cancel()
	t.Logf("the asker heard %v", <-heard)
	if e := a.over(first.Execution); e.Outcome != "cancelled" {
		t.Errorf("the first ended as %+v", e)
	}
	s.until("the second runs", func() bool { return s.lines("prompts") == 2 })
	for range 2 {
		if got := call[api.Controlled](a, api.MethodSessInterrupt, i); got.ExecutionID != first.Execution {
			t.Errorf("it ended the turn of %s", got.ExecutionID)
		}
	}
	s.touch("go")
	if e := a.over(second.Execution); e.Outcome != "completed" {
		t.Errorf("the second ended as %+v", e)
	}
	a.detach(id)
	s.quiet()
}
