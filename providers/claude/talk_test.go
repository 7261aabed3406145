package claude

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
	"github.com/pintle/pintle/providers/wire"
)

// talk is a fold and what came of it. Tests speak for Claude Code.
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
func (k *talk) steers(op string) (frames []providers.Frame, ok bool) {
	k.t.Helper()
	frames, ok = k.Steer(op, "text of "+op)
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

// greets answers the request that opens the conversation.
func (k *talk) greets(more string) []providers.Frame {
	k.t.Helper()
	return k.say(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"claude_code_version":%q,"current_permission_mode":"default"%s}}}`,
		k.Waiting, Tested, more))
}

// hooked is what one that can be held to asking says besides.
const hooked = `,"hooks_applied":true,"hook_on_failure_supported":true`

// order is the n-th.
func order(n int, approve string) providers.Order {
	return providers.Order{Turn: fmt.Sprintf("t%d", n), Prompt: "x", Cwd: "/dir", Approve: approve}
}

// runs comes to a turn that runs.
func (k *talk) runs(o providers.Order) {
	k.t.Helper()
	k.begin(o)
	if k.Waiting != "" {
		k.greets(hooked)
	}
	if gated(o) {
		wantFrames(k.t, k.say(prompted), `"response":{}`)
	}
	k.works()
}

// prompted is that a prompt came by our hook.
const prompted = `{"type":"control_request","request_id":"p","request":{"subtype":"hook_callback","callback_id":"prompt","input":{"prompt":"x"}}}`

// works begins the turn that was given.
func (k *talk) works() { k.t.Helper(); k.says(stateIs("running"), k.inits(k.promptID())) }

// stateIs is what the agent is at.
func stateIs(s string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"session_state_changed","state":%q}`, s)
}

// inits is the beginning of a turn about messages.
func (k *talk) inits(messages ...string) string {
	line := map[string]any{"type": "system", "subtype": "init", "model": "m", "session_id": k.Session, "permissionMode": "default"}
	if len(messages) > 0 {
		line["user_message_uuids"] = messages
	}
	return string(wire.Encode(line))
}

// fateOf is what became of a message.
func fateOf(id, how string) string {
	return fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, id, how)
}

// replay is a message of ours, said again.
func replay(id string) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":"x"},"uuid":%q,"isReplay":true}`, id)
}

// message is one of the model's in pieces, which costs 100 tokens and 10.
func (k *talk) message(id, text string) {
	k.t.Helper()
	k.says(
		fmt.Sprintf(`{"type":"stream_event","event":{"type":"message_start","message":{"id":%q,"usage":{"input_tokens":60,"cache_creation_input_tokens":10,"cache_read_input_tokens":30,"output_tokens":1}}}}`, id),
		fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":%q}}}`, text),
		fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"content":[{"type":"text","text":%q}]}}`, id, text),
		`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":10}}}`,
	)
}

// results is how a turn ended, with more of it.
func results(subtype, more string) string {
	return fmt.Sprintf(`{"type":"result","subtype":%q,"is_error":%t%s}`, subtype, subtype != "success", more)
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
