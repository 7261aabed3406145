package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// A talk is a fold and what it was told and said.
type talk struct {
	t      *testing.T
	agent  *agent
	fold   providers.Agent
	offset int64
	frames []string
	events []providers.Event
}

// with begins a talk with an agent whose ways are those, for an order in /dir.
func with(t *testing.T, a agent, o providers.Order) *talk {
	t.Helper()
	if a.title == "" {
		a.title = "it"
	}
	k := &talk{t: t, agent: &a}
	f, err := restore(k.agent, nil)
	if err != nil {
		t.Fatal(err)
	}
	k.fold = f.(providers.Agent)
	o.Turn, o.Cwd = "t1", "/dir"
	if o.Prompt == "" && !o.Open {
		o.Prompt = "do it"
	}
	k.made(k.fold.Begin(o))
	return k
}

// made takes in frames.
func (k *talk) made(frames []providers.Frame) {
	for _, f := range frames {
		k.frames = append(k.frames, strings.TrimSpace(string(f.Data)))
	}
}

// hears has the fold hear lines; it is written down and taken up again between any two.
func (k *talk) hears(lines ...string) {
	k.t.Helper()
	for _, line := range lines {
		events, frames := k.fold.Receive(providers.Chunk{Stream: providers.Stdout, Offset: k.offset, Data: []byte(line + "\n")})
		k.offset += int64(len(line)) + 1
		k.events = append(k.events, events...)
		k.made(frames)
		f, err := restore(k.agent, k.fold.State())
		if err != nil {
			k.t.Fatal(err)
		}
		k.fold = f.(providers.Agent)
	}
}

// said wants the last frame to have words in it.
func (k *talk) said(words ...string) {
	k.t.Helper()
	last := k.frames[len(k.frames)-1]
	for _, w := range words {
		if !strings.Contains(last, w) {
			k.t.Errorf("it said %s, without %s", last, w)
		}
	}
}

// ended wants the turn to have ended so.
func (k *talk) ended(outcome session.Outcome, code, words string) {
	k.t.Helper()
	if end := k.fold.About().End; end == nil || end.Outcome != outcome || end.Code != code || !strings.Contains(end.Message, words) {
		k.t.Errorf("it ended as %+v; want %s, %q, %q", end, outcome, code, words)
	}
}

// count is how many events of a kind have words in them.
func (k *talk) count(kind, words string) (n int) {
	for _, e := range k.events {
		if e.Type == kind && strings.Contains(string(e.Data), words) {
			n++
		}
	}
	return n
}

// answerTo is the answer to one of our requests.
func answerTo(what, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s/t1","result":%s}`, what, result)
}

func errorTo(what string, code int, message, data string) string {
	if data == "" {
		data = "null"
	}
	m, _ := json.Marshal(message)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s/t1","error":{"code":%d,"message":%s,"data":%s}}`, what, code, m, data)
}

// told is a session/update.
func told(fields string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{` + fields + `}}}`
}

func piece(text, id string) string {
	return told(fmt.Sprintf(`"sessionUpdate":"agent_message_chunk","messageId":%q,"content":{"type":"text","text":%q}`, id, text))
}

const (
	hello     = `{"protocolVersion":1,"agentInfo":{"version":"9"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}`
	loads     = `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`
	neither   = `{"protocolVersion":1,"agentCapabilities":{}}`
	twoModes  = `{"sessionId":"s","modes":{"currentModeId":"auto","availableModes":[{"id":"auto"},{"id":"default"}]}}`
	asksToRun = `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"ls -l","kind":"execute","rawInput":{"command":"ls -l"}},"options":[{"optionId":"zz","kind":"allow_always"},{"optionId":"a1","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}`
)

// prompted is a talk that has come to the prompt.
func prompted(t *testing.T, a agent, o providers.Order) *talk {
	t.Helper()
	k := with(t, a, o)
	k.hears(answerTo("initialize", hello), answerTo("open", `{"sessionId":"s"}`))
	k.said("session/prompt", `"sessionId":"s"`)
	return k
}
