package pi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

// talk is a fold and what came of it. Tests speak for pi.
type talk struct {
	*fold
	t      *testing.T
	offset int64
	events []providers.Event
	frames []providers.Frame
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	return &talk{fold: &fold{}, t: t}
}

// hears keeps what the fold makes. No operation comes twice in the life of a process.
func (k *talk) hears(frames []providers.Frame) []providers.Frame {
	k.t.Helper()
	for _, frame := range frames {
		if slices.ContainsFunc(k.frames, func(o providers.Frame) bool { return o.Op == frame.Op }) {
			k.t.Errorf("operation %q is made again by %s", frame.Op, frame.Data)
		}
		k.frames = append(k.frames, frame)
	}
	return frames
}

func (k *talk) begin(o providers.Order) []providers.Frame {
	k.t.Helper()
	return k.hears(k.Begin(o))
}

func (k *talk) interrupts() []providers.Frame {
	k.t.Helper()
	return k.hears(k.Interrupt())
}

func (k *talk) answers(permission string, d providers.Decision) []providers.Frame {
	k.t.Helper()
	return k.hears(k.Answer(permission, d))
}

// steers puts a message into the turn.
func (k *talk) steers(op, text string) (frames []providers.Frame, ok bool) {
	k.t.Helper()
	frames, ok = k.Steer(op, text)
	return k.hears(frames), ok
}

// say is a line of the agent's. The fold that hears it is one that was written down and taken up again.
func (k *talk) say(line string) []providers.Frame {
	k.t.Helper()
	again, err := restore(k.State())
	if err != nil {
		k.t.Fatal(err)
	}
	k.fold = again.(*fold)
	events, frames := k.Receive(providers.Chunk{Stream: providers.Stdout, Offset: k.offset, Data: []byte(line + "\n")})
	k.offset += int64(len(line) + 1)
	k.events = append(k.events, events...)
	return k.hears(frames)
}

// says are several lines, the frames of the last of which are returned.
func (k *talk) says(lines ...string) (frames []providers.Frame) {
	k.t.Helper()
	for _, line := range lines {
		frames = k.say(line)
	}
	return frames
}

// order is the n-th.
func order(n int, approve string) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", n), Prompt: "x", Cwd: "/dir", Approve: approve}
}

// stateOf is the answer to get_state, with so many messages in the conversation.
func (k *talk) stateOf(count int) string {
	return fmt.Sprintf(`{"id":%q,"type":"response","command":"get_state","success":true,"data":{"sessionId":%q,"messageCount":%d,"model":{"id":"m","provider":"p","name":"The Model"}}}`,
		k.Waiting, k.Session, count)
}

// signs is what our extension says.
const signs = `{"type":"extension_ui_request","id":"s","method":"setStatus","statusKey":"pintle","statusText":"asks"}`

// answer is one to a request of ours that did something.
func answer(id, disposition string) string {
	return fmt.Sprintf(`{"id":%q,"type":"response","success":true,"data":{"disposition":%q}}`, id, disposition)
}

// refusal is an answer to one that did not.
func refusal(id, why string) string {
	return fmt.Sprintf(`{"id":%q,"type":"response","success":false,"error":%q}`, id, why)
}

// user is a message of the user's, once it is in the conversation.
func user(text string) string {
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":%q}]}}`, text)
}

const (
	runs        = `{"type":"agent_start"}`
	settles     = `{"type":"agent_settled","aborted":false}`
	breaksOff   = `{"type":"agent_settled","aborted":true}`
	beginsToSay = `{"type":"message_start","message":{"role":"assistant","content":[],"stopReason":"pending"}}`
)

// piece is one of a message's text.
func pieceOf(text string) string {
	return fmt.Sprintf(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%q}}`, text)
}

// ended is the end of a message of the model's, which costs 100 tokens and 10.
func ended(stop, more string) string {
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"assistant","content":[],"usage":{"input":60,"output":10,"cacheRead":30,"cacheWrite":10,"cost":{"total":0.5}},"stopReason":%q%s}}`, stop, more)
}

// opens comes to a conversation that stands.
func (k *talk) opens(o providers.Order) []providers.Frame {
	k.t.Helper()
	k.begin(o)
	if gated(o) {
		k.say(signs)
	}
	return k.say(k.stateOf(0))
}

// works comes to a turn that runs.
func (k *talk) works(o providers.Order) {
	k.t.Helper()
	if !k.Ready {
		k.opens(o)
	} else {
		k.begin(o)
	}
	k.says(answer(k.promptID(), started), runs, user("x"))
}

// wantEnd compares the turn's end, its message by a part of it.
func (k *talk) wantEnd(outcome session.Outcome, code, message string) {
	k.t.Helper()
	end := k.About().End
	if end == nil || end.Outcome != outcome || end.Code != code || !strings.Contains(end.Message, message) {
		k.t.Errorf("the turn ended as %+v, want %s %s %q", end, outcome, code, message)
	}
}

// wantOn wants the turn to go on.
func (k *talk) wantOn() {
	k.t.Helper()
	if end := k.About().End; end != nil {
		k.t.Errorf("the turn ended as %+v", end)
	}
}

// told are the data of the events of a type.
func (k *talk) told(kind string) (data []string) {
	for _, e := range k.events {
		if e.Type == kind {
			data = append(data, string(e.Data))
		}
	}
	return data
}

func (k *talk) wantTold(kind string, want ...string) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.told(kind)); diff != "" {
		k.t.Errorf("%s (-want +got)\n%s", kind, diff)
	}
}

// text is that of a message, by its pieces.
func (k *talk) text(id string) (text string) {
	for _, data := range k.told("agent_message_chunk") {
		var c chunk
		if json.Unmarshal([]byte(data), &c) == nil && c.MessageID == id {
			text += c.Content.Text
		}
	}
	return text
}

// wantFrames compares the frames by parts of them.
func wantFrames(t *testing.T, frames []providers.Frame, want ...string) {
	t.Helper()
	if len(frames) != len(want) {
		t.Fatalf("%d frames: %s, want %d", len(frames), joined(frames), len(want))
	}
	for i, frame := range frames {
		if !strings.Contains(frame.Op+" "+string(frame.Data), want[i]) {
			t.Errorf("frame %d is %s %s, want %s", i, frame.Op, frame.Data, want[i])
		}
	}
}

func joined(frames []providers.Frame) []byte {
	var b bytes.Buffer
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s", f.Op, f.Data)
	}
	return b.Bytes()
}
