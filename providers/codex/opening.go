package codex

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// Begin takes an order in: the first one opens the conversation, by way of the server's answers; a later one is a turn
// in the thread that is loaded. Commands of an earlier turn that still run stay known.
func (f *fold) Begin(o providers.Order) []providers.Frame {
	if f.Turn != "" {
		f.before(f.Turn)
	}
	f.Order, f.newest = o, newest{}
	f.Shared, f.Greeted = f.Shared || o.Shared || o.Joins, f.Greeted || o.Joins
	return f.made(f.ordered("begin"), 0, func() {
		switch {
		case !f.Greeted:
			f.greet()
		case f.Thread == "":
			f.open()
		default:
			f.prompt()
		}
	})
}

func (f *fold) greet() {
	f.await("init", "initialize", map[string]any{
		"clientInfo":   map[string]string{"name": "pintle", "title": "pintle", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true},
	})
}

// answered goes on with what the answer to one of our requests allows. Only one that is waited for counts.
func (f *fold) answered(id string, result json.RawMessage) {
	if s := f.steering(id); s != nil {
		s.taken()
	}
	if id == "" || id != f.Waiting {
		return
	}
	f.Waiting = ""
	switch what, _, _ := strings.Cut(id, "/"); what {
	case "init":
		f.greeted(result)
	case "config":
		f.probe(result)
	case "probe":
		f.probed(result)
	case "thread":
		f.opened(result)
	default:
		f.prompted(result)
	}
}

func (f *fold) greeted(result json.RawMessage) {
	var r struct{ UserAgent string }
	_ = json.Unmarshal(result, &r)
	if _, rest, ok := strings.Cut(r.UserAgent, "/"); ok {
		version, _, _ := strings.Cut(rest, " ")
		f.isVersion(version)
	}
	f.Greeted = true
	f.send(map[string]any{"method": "initialized"})
	f.open()
}

// isVersion takes in the server's version.
func (f *fold) isVersion(version string) {
	f.Version = clip(version, idLimit)
	if newer(f.Version, Tested) {
		f.notice("Codex " + f.Version + " is newer than " + Tested + ", with which this was tested")
	}
}

// newer says that a version is, in its first two numbers.
func newer(version, than string) bool { return slices.Compare(numbers(version), numbers(than)) > 0 }

func numbers(version string) (n []int) {
	for _, part := range strings.SplitN(version, ".", 3)[:min(2, 1+strings.Count(version, "."))] {
		number, _ := strconv.Atoi(part)
		n = append(n, number)
	}
	return n
}

// open opens the thread. For one that goes on it is found out first what a new one would be given: thread/resume gives
// back the policy, the sandbox, the reviewer and the writable directories of the run before, and permissions must not
// carry over (case 28).
func (f *fold) open() {
	f.Own = nil
	if f.Order.Conversation == "" {
		f.start()
		return
	}
	f.await("config", "config/read", map[string]string{"cwd": f.Order.Cwd})
}

// start opens a new thread. With a directory stated beside a sandbox that can be written in, the server would note in the
// user's configuration that it trusts the directory, and later runs could write there unasked (case 28). Without one it
// takes its own, in which it was started: the order's, unless it is shared. The environment's directory is not trusted.
func (f *fold) start() {
	params := f.opening()
	if p, ok := policies[f.Order.Approve]; ok {
		p.stance().state(params)
		if p.sandbox != "read-only" {
			delete(params, "cwd")
			if f.Shared {
				params["environments"] = []any{map[string]string{"environmentId": "local", "cwd": f.Order.Cwd}}
			}
		}
	}
	f.await("thread", "thread/start", params)
}

// opening is what a thread is opened with, new or not. A goal would have the server begin turn after turn by itself, from
// the moment that the thread is loaded; an order is one turn.
func (f *fold) opening() map[string]any {
	config := f.leavable(map[string]any{"features": map[string]bool{"goals": false}})
	params := map[string]any{"cwd": f.Order.Cwd, "config": config}
	if f.Order.Model != "" {
		params["model"] = f.Order.Model
	}
	return params
}

// leavable has a thread of a shared server be unloaded as soon as it is left. By itself the server keeps it for a minute, and
// its lock.
func (f *fold) leavable(config map[string]any) map[string]any {
	if f.Shared {
		config["thread_unload_delay_secs"] = 0
	}
	return config
}

// probe opens a thread that is kept nowhere, for the answer: what config/read says is not all, since what is left out
// there depends on where it runs. It states no policy, which could have the directory trusted from then on; and it starts
// none of the MCP servers, which the thread itself will.
func (f *fold) probe(config json.RawMessage) {
	var r struct {
		Config struct {
			Servers map[string]json.RawMessage `json:"mcp_servers"`
		}
	}
	_ = json.Unmarshal(config, &r)
	servers := map[string]any{}
	for name := range r.Config.Servers {
		servers[name] = map[string]bool{"enabled": false}
	}
	own := f.leavable(map[string]any{"mcp_servers": servers})
	params := map[string]any{"cwd": f.Order.Cwd, "ephemeral": true, "config": own}
	f.await("probe", "thread/start", params)
}

// probed resumes the thread with what the probe was given, stated.
func (f *fold) probed(result json.RawMessage) {
	var r thread
	_ = json.Unmarshal(result, &r)
	own, err := r.stance(f.Order.Approve)
	if err != nil {
		f.finish(session.Failed, "config", err.Error())
		return
	}
	f.Own = own
	f.built(r)
	f.forget(r)
	params := f.opening()
	params["threadId"], params["excludeTurns"] = f.Order.Conversation, true
	own.state(params)
	f.await("thread", "thread/resume", params)
}

// built takes in the version of a server that another fold has greeted: that of a thread that it has made.
func (f *fold) built(r thread) {
	if f.Version == "" && r.Thread.CliVersion != "" {
		f.isVersion(r.Thread.CliVersion)
	}
}

// forget has the server not keep a thread.
func (f *fold) forget(r thread) {
	f.call(f.request("forget"), "thread/unsubscribe", map[string]string{"threadId": string(r.Thread.ID)})
}

// opened checks that the thread is what was asked for, and gives the prompt.
func (f *fold) opened(result json.RawMessage) {
	var r thread
	_ = json.Unmarshal(result, &r)
	f.Model, f.Dir = clip(r.Model, idLimit), clip(r.dir(f.Shared), titleLimit)
	if f.Own == nil {
		f.built(r)
	}
	if err := f.check(r); err != nil {
		f.finish(session.Failed, err.code, err.message)
		if f.Shared && r.Thread.ID != "" {
			f.forget(r)
		}
		return
	}
	f.Thread, f.Own = string(r.Thread.ID), nil
	f.prompt()
}

// mismatch is why a thread is not what was asked for.
type mismatch struct{ code, message string }

func (f *fold) check(r thread) *mismatch {
	id := string(r.Thread.ID)
	switch {
	case id == "":
		return &mismatch{"protocol", "codex opened no thread"}
	case f.Own != nil && id != f.Order.Conversation:
		return &mismatch{"protocol", fmt.Sprintf("codex opened the thread %s in place of %s", id, f.Order.Conversation)}
	}
	want := f.Own
	if p, ok := policies[f.Order.Approve]; ok && want == nil {
		want = p.stance()
	}
	if why := want.missed(r); why != "" {
		return &mismatch{"config", "codex did not take the policy: " + why}
	}
	return nil
}

// refused is an error answer. One to what nobody waits for means that there was nothing to do: to interrupt, say.
func (f *fold) refused(id, message string) {
	if s := f.steering(id); s != nil {
		s.Refuse(message)
	}
	if id == "" || id != f.Waiting {
		return
	}
	f.Waiting = ""
	what, _, _ := strings.Cut(id, "/")
	archived := strings.Contains(message, "is archived")
	switch {
	case what == "config":
		f.probe(nil) // a version that has it not
	case what == "thread" && f.Own != nil && strings.Contains(message, "no rollout found"):
		f.replace(message)
	case archived && !strings.Contains(message, "codex unarchive"):
		f.finish(session.Failed, "config", message+": run codex unarchive "+f.Order.Conversation)
	case strings.Contains(message, "already has an active writer"):
		f.finish(session.Failed, "busy", message)
	case strings.Contains(message, "thread not found"):
		f.finish(session.Failed, "transport", message) // it was unloaded; another process can load it
	default:
		f.finish(session.Failed, "config", message)
	}
}

// replace opens one fresh conversation in place of one that is gone (B1).
func (f *fold) replace(why string) {
	f.tell("conversation_replaced", map[string]string{"was": f.Order.Conversation, "why": clip(why, wordsLimit)})
	f.Own = nil
	f.start()
}
