package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/rpc/api"
)

// talk is all that clients of the socket do in a round: they open sessions with an agent, share them, take them from each
// other, and give them messages.
type talk struct {
	mu       sync.Mutex
	sessions []string // ids, or keys of runs that opened one
	messages []*message
	runs     []string // keys of runs that opened a session
	done     []*deed  // that were answered
	stranded map[string]bool
	made     int
	repeats  int // answers that were given twice
}

// message is a text that no other has.
type message struct {
	session, text, when string
	id                  string // the operation's, and the execution's
	refused             api.Code
}

// visitors are as many clients as come at once.
const visitors = 3

// maxSessions is how many sessions are made in a round: each has a process.
const maxSessions = 8

// plantAgent builds the agent, and the program that is called codex.
func (r *round) plantAgent() error {
	program := filepath.Join(filepath.Dir(r.binary), "standin")
	if !there(program) {
		if out, err := exec.Command("go", "build", "-o", program, "github.com/pintle/pintle/testscripts/standin").CombinedOutput(); err != nil {
			return fmt.Errorf("build the agent: %w\n%s", err, out)
		}
	}
	err := os.Mkdir(filepath.Join(r.dir, "bin"), 0o700)
	if err == nil {
		err = os.MkdirAll(filepath.Join(r.agents(), "shared"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "bin", "codex"), []byte("#!/bin/sh\nexec "+program+"\n"), 0o700)
	}
	return err
}

// agents is where the agents have their directories.
func (r *round) agents() string { return filepath.Join(r.dir, "agents") }

// path is one with the agent on it.
func (r *round) path() string { return filepath.Join(r.dir, "bin") + ":" + os.Getenv("PATH") }

// answered keeps a deed, to be done again at some time.
func (r *round) answered(what *deed) {
	r.talk.mu.Lock()
	defer r.talk.mu.Unlock()
	r.talk.done = append(r.talk.done, what)
}

// visit is what a client does: two things at a time.
func (r *round) visit(ctx context.Context, v *visitor, n int) {
	var both sync.WaitGroup
	for hand := range 2 {
		d := newDice(r.o.seed, r.n, 200+2*n+hand)
		both.Go(func() {
			for ctx.Err() == nil {
				v.act(ctx, d)
				sleep(ctx, d.between(time.Millisecond, 120*time.Millisecond))
			}
		})
	}
	both.Wait()
	v.goodbye()
}

func (v *visitor) act(ctx context.Context, d dice) {
	id := v.r.anySession(d)
	roll := d.IntN(100)
	switch {
	case id == "" || roll < 5:
		v.open(d)
	case roll < 7:
		v.r.openByRun(d)
	case roll < 22:
		v.attach(d, id)
	case roll < 60:
		v.say(d, id)
	case roll < 66:
		_ = v.do(d, v.deed(d, api.MethodSessInterrupt, func(o api.Operation) any { return api.Interrupt{Operation: o, Session: id} }))
	case roll < 76:
		v.answer(d)
	case roll < 84:
		_ = v.do(d, v.deed(d, api.MethodSessDetach, func(o api.Operation) any { return api.Detach{Operation: o, Session: id} }))
	case roll < 90:
		v.repeat(d)
	case roll < 94:
		v.vanish()
		sleep(ctx, d.between(time.Millisecond, 500*time.Millisecond))
	case roll < 96:
		v.recover(id)
	case roll < 98:
		v.goodbye()
	default:
		v.look(id)
	}
}

func (v *visitor) deed(d dice, method string, params func(api.Operation) any) *deed {
	o := d.newOperation()
	return &deed{method: method, params: params(o), id: o.OperationID}
}

// anySession picks one.
func (r *round) anySession(d dice) string {
	r.talk.mu.Lock()
	defer r.talk.mu.Unlock()
	if len(r.talk.sessions) == 0 {
		return ""
	}
	return r.talk.sessions[d.IntN(len(r.talk.sessions))]
}

// place is a directory for one more session, "" if there are enough.
func (r *round) seat() string {
	r.talk.mu.Lock()
	defer r.talk.mu.Unlock()
	if r.talk.made >= maxSessions {
		return ""
	}
	r.talk.made++
	dir := filepath.Join(r.agents(), fmt.Sprint(r.talk.made))
	_ = os.MkdirAll(dir, 0o700)
	return dir
}

func (r *round) met(id string) {
	r.talk.mu.Lock()
	defer r.talk.mu.Unlock()
	r.talk.sessions = append(r.talk.sessions, id)
}

// open makes a session.
func (v *visitor) open(d dice) {
	dir := v.r.seat()
	if dir == "" {
		return
	}
	share := d.IntN(3) == 0
	if share {
		dir = filepath.Join(v.r.agents(), "shared")
	}
	what := v.deed(d, api.MethodSessCreate, func(o api.Operation) any {
		return api.CreateSession{
			Operation: o, Provider: "codex", Cwd: dir, Share: share, Restart: []string{"", "on-crash", "on-demand"}[d.IntN(3)],
			Environment: map[string]string{"PATH": v.r.path(), "HOME": v.r.dir},
		}
	})
	if v.do(d, what) != nil {
		return
	}
	var s api.Session
	if err := json.Unmarshal(what.answer, &s); err != nil || s.Lease == nil {
		v.r.blame("session/create answered %s", what.answer)
		return
	}
	v.r.met(s.ID)
}

// openByRun has a session opened by a run.
func (r *round) openByRun(d dice) {
	dir := r.seat()
	if dir == "" {
		return
	}
	key, text := "run"+filepath.Base(dir), r.newText(d, dir)
	env := slices.DeleteFunc(r.env(1), func(e string) bool { return strings.HasPrefix(e, "LANG=") }) // of what no record holds none goes on by itself
	env = append(env, "PATH="+r.path())
	for range 20 {
		res := r.verb(env, true, "run", "--id", key, "-d", "-C", dir, "-a", "codex", text)
		if res.code == 0 {
			r.talk.mu.Lock()
			r.talk.runs = append(r.talk.runs, key)
			r.talk.messages = append(r.talk.messages, &message{session: key, text: text, id: key})
			r.talk.sessions = append(r.talk.sessions, key)
			r.talk.mu.Unlock()
			return
		}
		if res.code != -1 && !res.full {
			r.blame("run -d --id %s -a codex: exit %d: %s", key, res.code, res.err)
			return
		}
	}
}

// newText is a prompt that no other is.
func (r *round) newText(d dice, session string) string {
	name := fmt.Sprintf("m%d-%d", r.n, d.Int64())
	switch d.IntN(6) {
	case 0:
		return "say " + name + "; hold go"
	case 1:
		return "ask " + name
	case 2:
		return "say " + name + "; flood 200 2000"
	case 3:
		return "tool " + name + "; steer; say more"
	}
	return "say " + name
}

func (v *visitor) attach(d dice, id string) {
	what := v.deed(d, api.MethodSessAttach, func(o api.Operation) any {
		return api.Attach{Operation: o, Session: id, Mode: []string{"shared", "shared", "exclusive"}[d.IntN(3)], TakeOver: d.IntN(5) == 0}
	})
	_ = v.do(d, what)
}

// say gives a session a message.
func (v *visitor) say(d dice, id string) {
	m := &message{session: id, text: v.r.newText(d, id), when: []string{"", "queue", "queue", "steer", "interrupt"}[d.IntN(5)]}
	what := v.deed(d, api.MethodSessSend, func(o api.Operation) any {
		s := api.Send{Operation: o, Session: id, Text: m.text, When: m.when}
		if d.IntN(4) == 0 {
			s.Environment = map[string]string{"PATH": v.r.path(), "HOME": v.r.dir}
		}
		return s
	})
	m.id = what.id
	if err := v.do(d, what); err != nil {
		m.refused = api.CodeOf(err)
	}
	v.r.talk.mu.Lock()
	v.r.talk.messages = append(v.r.talk.messages, m)
	v.r.talk.mu.Unlock()
}

// answer answers what an agent asks.
func (v *visitor) answer(d dice) {
	v.r.talk.mu.Lock()
	var ask []string
	for _, m := range v.r.talk.messages {
		if strings.HasPrefix(m.text, "ask") && m.refused == "" {
			ask = append(ask, m.id)
		}
	}
	v.r.talk.mu.Unlock()
	if len(ask) == 0 {
		return
	}
	id := ask[len(ask)-1-d.IntN(min(len(ask), 4))]
	_ = v.do(d, v.deed(d, api.MethodAnswer, func(o api.Operation) any {
		return api.Answer{Operation: o, ID: id, Decision: []string{"allow", "deny"}[d.IntN(2)]}
	}))
}

// repeat does something again that was answered before: by whomever, and it is answered the same.
func (v *visitor) repeat(d dice) {
	v.r.talk.mu.Lock()
	var was *deed
	if n := len(v.r.talk.done); n > 0 {
		was = v.r.talk.done[d.IntN(n)]
	}
	v.r.talk.mu.Unlock()
	if was != nil {
		v.doAgain(d, was)
	}
}

func (v *visitor) doAgain(d dice, was *deed) {
	for limit := time.Now().Add(deedLimit); time.Now().Before(limit); {
		full := v.r.fullN.Load()
		answer, err := v.call(context.Background(), callLimit, was.method, was.params)
		switch full = full%2 + v.r.fullN.Load() - full; {
		case err != nil && v.again(err, full > 0):
			sleep(context.Background(), d.between(time.Millisecond, 30*time.Millisecond))
			continue
		case was.method == api.MethodAnswer && api.CodeOf(err) == api.CodeResolved: // killed between the answer and its receipt
		case err != nil:
			v.r.blame("%s %s was answered, and is refused: %s: %v", was.method, brief(was.params), api.CodeOf(err), err)
		case !same(answer, was.answer):
			v.r.blame("%s %s was answered %s, and is answered %s", was.method, brief(was.params), was.answer, answer)
		}
		v.r.talk.mu.Lock()
		v.r.talk.repeats++
		v.r.talk.mu.Unlock()
		return
	}
	v.r.blame("%s %s was answered, and is not answered in %v", was.method, brief(was.params), deedLimit)
}

func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// recover leads a session out of where it is parked; of one that is not it changes nothing.
func (v *visitor) recover(id string) {
	_, err := v.call(context.Background(), callLimit, api.MethodSessRecover, api.RecoverSession{Session: id})
	v.r.say("recover %s: %v", id, err)
}

// look reads, which every client may.
func (v *visitor) look(id string) {
	for _, method := range []string{api.MethodSessGet, api.MethodSessHistory} {
		full := v.r.fullN.Load()
		_, err := v.call(context.Background(), callLimit, method, api.SessionTarget{Session: id})
		full = full%2 + v.r.fullN.Load() - full
		if code := api.CodeOf(err); err != nil && code != api.CodeNotFound && !v.again(err, full > 0) {
			v.r.blame("%s %s: %s: %v", method, id, code, err)
		}
	}
}
