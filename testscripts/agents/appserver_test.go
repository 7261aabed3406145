//go:build agents

package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/fakemodel"
)

// patience is how long a test waits for anything.
const patience = time.Minute

// native finds Codex's own binary behind its wrapper for Node, or skips the test.
func native(t testing.TB) string {
	t.Helper()
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	found, err := filepath.Glob("node_modules/@openai/codex-" + runtime.GOOS + "-" + arch + "/vendor/*/bin/codex")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("Codex is not installed: run testscripts/agents/install.sh")
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A lab is a home of Codex, a directory to work in and a model, all thrown away with the test.
type lab struct {
	binary, home, dir string
	model             *fakemodel.Server
	names             placeholders
	config            []byte // as it was at first, once it was changed
}

const config = `model = %q
model_provider = "fake"
check_for_update_on_startup = false
web_search = "disabled"
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
trace_exporter = "none"
metrics_exporter = "none"
[features]
plugins = false
apps = false
remote_plugin = false
[model_providers.fake]
name = "fake"
base_url = %q
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 4000
`

// newLab makes a lab whose Codex takes the fake for the named model.
func newLab(t testing.TB, model string) *lab {
	t.Helper()
	l := &lab{binary: native(t), model: fakemodel.New(t, fakemodel.Options{})}
	t.Cleanup(func() {
		for _, m := range l.model.Mistakes() {
			t.Errorf("the model was asked by mistake: %s", m)
		}
	})
	// Codex makes its helpers in its home, and not if that is under /tmp.
	base, err := os.MkdirTemp("/var/tmp", "pintle-codex-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	l.home, l.dir = filepath.Join(base, "home"), filepath.Join(base, "dir")
	for _, dir := range []string{l.home, l.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := fmt.Appendf(nil, config, model, l.model.URL())
	if err := os.WriteFile(filepath.Join(l.home, "config.toml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// A frame is one line of the app-server's.
type frame struct {
	ID     json.RawMessage
	Method string
	Params params
	Result json.RawMessage
	Error  *struct{ Message string }
}

// params are those of any notification or request, as far as tests look.
type params struct {
	ThreadID   string
	TurnID     string
	RequestID  json.RawMessage
	ItemID     string
	Delta      string
	WillRetry  bool
	Item       item
	Turn       turn
	Error      turnError
	Status     json.RawMessage
	TokenUsage struct{ Total, Last struct{ TotalTokens int } }
}

type item struct {
	Type, ID, Text, Status, Command, ProcessID string
	AggregatedOutput                           *string
	ExitCode                                   *int
	Summary                                    []string
	Changes                                    []struct{ Path string }
}

type turn struct {
	ID, Status  string
	Error       *turnError
	CompletedAt *int64
	Items       []item
}

type turnError struct {
	Message        string
	CodexErrorInfo json.RawMessage
}

// An appServer is a running `codex app-server`, with all that it and we said.
type appServer struct {
	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	ended   chan struct{} // closed at the end of its standard output
	lastID  int
	foreign bool // it is another agent, whose lines are not decoded
	written [][]byte

	mu      sync.Mutex
	frames  []frame
	lines   [][]byte
	changed chan struct{} // closed at the next frame
}

// launch starts an app-server in the lab and shakes hands with it.
func (l *lab) launch(t testing.TB) *appServer {
	t.Helper()
	a := l.start(t)
	a.call("initialize", object{
		"clientInfo":   object{"name": "pintle", "title": "Pintle", "version": "0.1"},
		"capabilities": object{"experimentalApi": true, "requestAttestation": false},
	})
	a.write(object{"method": "initialized"})
	return a
}

// start starts an app-server in the lab. It ends with the test.
func (l *lab) start(t testing.TB) *appServer {
	t.Helper()
	a := &appServer{t: t}
	a.cmd = exec.Command(l.binary, "app-server", "--strict-config")
	a.cmd.Dir = l.dir
	a.cmd.Env = []string{"CODEX_HOME=" + l.home, "HOME=" + l.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "RUST_LOG=error"}
	a.begin(t)
	return a
}

// begin starts the process. It ends with the test.
func (a *appServer) begin(t testing.TB) {
	t.Helper()
	a.ended, a.changed = make(chan struct{}), make(chan struct{})
	stderr := new(bytes.Buffer)
	a.cmd.Stderr = stderr
	var err error
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go a.read(stdout)
	t.Cleanup(func() {
		a.close()
		if t.Failed() {
			t.Logf("standard error:\n%s", stderr)
		}
	})
}

type object = map[string]any

// read takes in the output until its end.
func (a *appServer) read(stdout io.Reader) {
	defer close(a.ended)
	for r := bufio.NewReader(stdout); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(line, &f); err != nil && !a.foreign {
			a.t.Errorf("%.300s: %v", line, err)
		}
		a.mu.Lock()
		a.frames, a.lines = append(a.frames, f), append(a.lines, line)
		close(a.changed)
		a.changed = make(chan struct{})
		a.mu.Unlock()
	}
}

// close ends the input, and with it the app-server and the commands that it runs.
func (a *appServer) close() {
	_ = a.stdin.Close() // it may be dead
	select {
	case <-a.ended:
	case <-time.After(patience):
		a.t.Error("the app-server does not end with its input")
		_ = a.cmd.Process.Kill()
	}
	_ = a.cmd.Wait() // whatever its status
}

// kill ends it as a crash would, and returns when all that it said was read.
func (a *appServer) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	<-a.ended
}

func (a *appServer) write(message any) {
	a.t.Helper()
	line, err := json.Marshal(message)
	if err != nil {
		a.t.Fatal(err)
	}
	a.put(append(line, '\n'))
}

func (a *appServer) put(line []byte) {
	a.t.Helper()
	a.written = append(a.written, line)
	if _, err := a.stdin.Write(line); err != nil {
		a.t.Fatal(err)
	}
}

// ask calls a method and returns the whole answer.
func (a *appServer) ask(method string, params object) frame {
	a.t.Helper()
	a.lastID++
	id := fmt.Sprint(a.lastID)
	a.write(object{"id": a.lastID, "method": method, "params": params})
	return a.await("the answer to "+method, func(f frame) bool { return f.Method == "" && string(f.ID) == id })
}

// call is ask for what must succeed.
func (a *appServer) call(method string, params object) json.RawMessage {
	a.t.Helper()
	f := a.ask(method, params)
	if f.Error != nil {
		a.t.Fatalf("%s: %s", method, f.Error.Message)
	}
	return f.Result
}

// all are the frames so far.
func (a *appServer) all() ([]frame, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.frames), a.changed
}

// await returns the first frame of all that matches, when it comes.
func (a *appServer) await(what string, match func(frame) bool) frame {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	for {
		frames, changed := a.all()
		if i := slices.IndexFunc(frames, match); i >= 0 {
			return frames[i]
		}
		select {
		case <-changed:
		case <-a.ended:
			a.fail(what, errors.New("the app-server has ended"))
		case <-ctx.Done():
			a.fail(what, ctx.Err())
		}
	}
}

func (a *appServer) fail(what string, why error) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t.Fatalf("wait for %s: %v; it said\n%.20000s", what, why, bytes.Join(a.lines, nil))
}

// A thread is a conversation in an app-server.
type thread struct {
	*appServer
	id string
}

// thread starts a conversation.
func (a *appServer) thread(policy, sandbox, dir string) thread {
	a.t.Helper()
	result := a.call("thread/start", object{"cwd": dir, "approvalPolicy": policy, "sandbox": sandbox})
	return thread{a, threadID(a.t, result)}
}

// threadID reads the answer to thread/start or thread/resume.
func threadID(t testing.TB, result json.RawMessage) string {
	t.Helper()
	var r struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(result, &r); err != nil || r.Thread.ID == "" {
		t.Fatalf("%s: %v", result, err)
	}
	return r.Thread.ID
}

// prompt starts a turn and returns its id, once it has begun.
func (th thread) prompt(text string) string {
	th.t.Helper()
	result := th.call("turn/start", object{"threadId": th.id, "input": input(text)})
	var r struct{ Turn turn }
	if err := json.Unmarshal(result, &r); err != nil {
		th.t.Fatal(err)
	}
	th.await("the turn's start", func(f frame) bool { return f.Method == "turn/started" && f.Params.Turn.ID == r.Turn.ID })
	return r.Turn.ID
}

func input(text string) []object {
	return []object{{"type": "text", "text": text, "text_elements": []object{}}}
}

// end returns how a turn ended, when it has.
func (th thread) end(id string) turn {
	th.t.Helper()
	return th.await("the turn's end", func(f frame) bool { return f.Method == "turn/completed" && f.Params.Turn.ID == id }).Params.Turn
}

// run has a turn carried out.
func (th thread) run(text string) turn {
	th.t.Helper()
	return th.end(th.prompt(text))
}

// interrupt ends a turn.
func (th thread) interrupt(id string) {
	th.t.Helper()
	th.call("turn/interrupt", object{"threadId": th.id, "turnId": id})
	if got := th.end(id); got.Status != "interrupted" || got.Error != nil {
		th.t.Errorf("the interrupted turn ended as %+v", got)
	}
}

// notified are the notifications so far of one method.
func (a *appServer) notified(method string) (found []params) {
	frames, _ := a.all()
	for _, f := range frames {
		if f.Method == method {
			found = append(found, f.Params)
		}
	}
	return found
}

// items are those completed so far, of one type.
func (a *appServer) items(kind string) (found []item) {
	for _, p := range a.notified("item/completed") {
		if p.Item.Type == kind {
			found = append(found, p.Item)
		}
	}
	return found
}

// awaitItem returns the first item of a type that was started or completed.
func (a *appServer) awaitItem(method, kind string) item {
	a.t.Helper()
	return a.await(method+" of "+kind, func(f frame) bool { return f.Method == method && f.Params.Item.Type == kind }).Params.Item
}

// wait waits for what the model is asked.
func (l *lab) wait(t testing.TB, cond func(requests []fakemodel.Request, answering int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.model.Wait(ctx, cond); err != nil {
		t.Fatalf("%v: the model was asked %+v", err, l.model.Requests())
	}
}
