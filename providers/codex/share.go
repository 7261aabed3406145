package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// One server can have the threads of several sessions. Each session has a fold of its own, which may be given any line:
// what is not about its thread, a thread of an agent that this one has started, or a request of its own says nothing to it.
// The server sends all of it to its one client, and numbers its own questions over all threads.

// parting is a thread that is being left.
type parting struct {
	Thread  string `json:"thread"`
	Request string `json:"request"`
}

// Owns says whether a key of Owner's is ours.
func (f *fold) Owns(key string) bool {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[i+1:] == f.Order.Turn || f.steering(key) != nil
	}
	return f.family(key)
}

// family says that a thread is ours, or one of an agent that ours has started.
func (f *fold) family(thread string) bool {
	return thread != "" && (thread == f.Thread || slices.Contains(f.Kin, thread))
}

// adopt notes the thread of an agent that was started.
func (f *fold) adopt(thread ident) {
	if !f.Shared || thread == "" || f.family(string(thread)) {
		return
	}
	f.Kin = append(f.Kin, string(thread))
	f.Kin = f.Kin[max(0, len(f.Kin)-most):]
}

// foreign says that what the server tells or asks is about a thread of another session's. That an agent was started by ours
// shows in the call that did so, and in the turn that its own turns go back to; nothing else of a thread says it.
func (f *fold) foreign(m message) bool {
	if !f.Shared || m.Method == "" {
		return false
	}
	var p struct {
		ThreadID, ConversationID ident
		Turn                     struct{ RootTurnID ident }
	}
	_ = json.Unmarshal(m.Params, &p)
	thread, root := cmp.Or(p.ThreadID, p.ConversationID), string(p.Turn.RootTurnID)
	if m.Method == "turn/started" && root != "" && (root == f.Turn || slices.Contains(f.Earlier, root)) {
		f.adopt(thread)
	}
	if thread == "" {
		return len(m.ID) == 0 && !strings.HasSuffix(strings.ToLower(m.Method), "warning")
	}
	return !f.family(string(thread))
}

// Leave goes out of a process in which others stay, as soon as what has been begun can be ended.
func (f *fold) Leave() []providers.Frame {
	f.Leaves = true
	return f.made(f.ordered("leave"), 0, f.depart)
}

// depart leaves, unless an answer is waited for that brings something to be left, or the turn has yet to start: an interrupt
// would be refused. Not to be told of a thread is not enough: a turn would go on unseen, and so would its commands.
func (f *fold) depart() {
	if !f.Leaves || f.Parted || f.Waiting != "" || f.Prompt != "" && !f.Started && f.End == nil {
		return
	}
	f.Parted = true
	f.interrupts()
	if f.End == nil {
		f.close(session.Cancelled, "cancelled", "the session left the agent's process")
	}
	if f.Thread == "" {
		return
	}
	for _, thread := range append(slices.Clone(f.Kin), f.Thread) {
		f.clean(thread)
		p := parting{thread, f.request("leave." + thread)}
		f.Partings = append(f.Partings, p)
		f.call(p.Request, "thread/unsubscribe", map[string]string{"threadId": thread})
	}
}

// farewell takes in what comes behind it: that the server has let go of a thread, so that another process can load it, and
// what became of a message that was put into the turn. An action tells nothing, so it is only here that what was asked
// lapses and what was open ends.
func (f *fold) farewell(m message) {
	f.lapse()
	f.abandon()
	var p struct {
		where
		Item item
	}
	var r struct{ Status string }
	_, _ = json.Unmarshal(m.Params, &p), json.Unmarshal(m.Result, &r)
	f.Partings = slices.DeleteFunc(f.Partings, func(o parting) bool {
		closed := m.Method == "thread/closed" && string(p.ThreadID) == o.Thread
		return closed || m.Method == "" && name(m.ID) == o.Request && r.Status == "notLoaded"
	})
	switch s := f.steering(name(m.ID)); {
	case m.Method == "item/started" && string(p.ThreadID) == f.Thread:
		f.confirmed(string(p.Item.ClientID))
	case m.Method == "" && m.Error != nil && s != nil:
		s.Refuse(m.Error.Message)
	}
}

// abandon ends what is open: its end is not told any more.
func (f *fold) abandon() {
	for _, o := range f.Items {
		f.tell("tool_call_update", map[string]any{"toolCallId": o.ID, "status": "failed"})
	}
	f.Items = nil
}

// closed is that a thread was unloaded. An agent's may be loaded again, and tells so.
func (f *fold) closed(params json.RawMessage) {
	var p where
	_ = json.Unmarshal(params, &p)
	f.Kin = slices.DeleteFunc(f.Kin, func(thread string) bool { return thread == string(p.ThreadID) })
}

var (
	isTold    = []byte(`{"method":"`)
	comesNext = []byte(`","params":{"threadId":"`)
	startsNew = []byte(`{"method":"thread/started","params":{"thread":{"id":"`)
	isAnswer  = []byte(`{"id":`)
	isError   = []byte(`{"error":`)
	idKey     = []byte(`,"id":`)
)

// owner tells whose a line is: the thread that it is about or, of an answer, the request that it answers. It is "" where
// that cannot be told without reading all of it, and of what is about no thread. The server writes an answer's id first,
// an error's last, and a piece's thread first; in a text a quote is never without its backslash, so no key is found there.
func owner(line []byte) string {
	switch {
	case bytes.HasPrefix(line, isTold):
		return about(line)
	case bytes.HasPrefix(line, isAnswer):
		return cmp.Or(identified(line[len(isAnswer):]), agreed(line))
	case bytes.HasPrefix(line, isError):
		if i := bytes.LastIndex(line, idKey); i >= 0 {
			return identified(line[i+len(idKey):])
		}
	}
	return ""
}

// about is the thread that a notification or a question is about.
func about(line []byte) string {
	if bytes.HasPrefix(line, startsNew) {
		return quoted(line[len(startsNew):])
	}
	method := line[len(isTold):]
	if i := bytes.IndexByte(method, '"'); i >= 0 && bytes.HasPrefix(method[i:], comesNext) {
		return quoted(method[i+len(comesNext):])
	}
	return agreed(line)
}

// agreed is the thread that all of a line names.
func agreed(line []byte) string {
	rest := behindThread(line)
	key := quoted(rest)
	for rest = behindThread(rest); rest != nil; rest = behindThread(rest) {
		if quoted(rest) != key {
			return outer(line) // one is in the arguments of a tool
		}
	}
	return key
}

// behindThread is what follows the next "threadId":" in a line, nil if there is none. Few of its bytes are an I.
func behindThread(line []byte) []byte {
	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], 'I')
		if i < 0 {
			return nil
		}
		at += i
		if bytes.HasPrefix(line[at:], []byte(`Id":"`)) && bytes.HasSuffix(line[:at], []byte(`"thread`)) {
			return line[at+len(`Id":"`):]
		}
	}
}

// quoted is a text up to its closing quote; "" if that is not near, or a backslash is in it.
func quoted(rest []byte) string {
	i := bytes.IndexByte(rest[:min(len(rest), idLimit)], '"')
	if i < 0 || bytes.IndexByte(rest[:i], '\\') >= 0 {
		return ""
	}
	return string(rest[:i])
}

// identified is a request's id, which is a text if it is ours.
func identified(rest []byte) string {
	if len(rest) == 0 || rest[0] != '"' {
		return ""
	}
	return quoted(rest[1:])
}

// outer is the thread of a line in which several are named.
func outer(line []byte) string {
	var m struct{ Params where }
	_ = json.Unmarshal(line, &m)
	return string(m.Params.ThreadID)
}

// roams says that a thread of an order has the order's directory in whatever server. One that is told to write leaves it
// out of thread/start: see start.
func roams(o providers.Order) bool {
	p, ok := policies[o.Approve]
	return !ok || p.sandbox == "read-only"
}
