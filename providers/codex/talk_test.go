package codex

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

// talk is a fold and what came of it. Tests speak for the server.
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

func (k *talk) begin(o providers.Order) { k.t.Helper(); k.hears(k.Begin(o)) }
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

// say is a line of the server's. The fold that hears it is one that was written down and taken up again.
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

// notifies is a notification of thread T.
func (k *talk) notifies(method, turn, rest string) []providers.Frame {
	k.t.Helper()
	if rest != "" {
		rest = "," + rest
	}
	return k.say(fmt.Sprintf(`{"method":%q,"params":{"threadId":"T","turnId":%q%s}}`, method, turn, rest))
}

// last is the last frame, decoded.
func (k *talk) last() (m struct {
	ID, Method string
	Params     map[string]any
}) {
	k.t.Helper()
	if len(k.frames) == 0 {
		k.t.Fatal("nothing was said")
	}
	_ = json.Unmarshal(k.frames[len(k.frames)-1].Data, &m)
	return m
}

// replies answers the last request.
func (k *talk) replies(result string) {
	k.t.Helper()
	k.say(fmt.Sprintf(`{"id":%q,"result":%s}`, k.last().ID, result))
}

func (k *talk) refuses(message string) {
	k.t.Helper()
	k.say(fmt.Sprintf(`{"id":%q,"error":{"code":-32600,"message":%q}}`, k.last().ID, message))
}

// opens comes to a thread T in which the prompt of the first order is to be given.
func (k *talk) opens() {
	k.t.Helper()
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	k.replies(`{"userAgent":"pintle/` + Tested + ` (Linux)"}`)
	k.replies(`{"thread":{"id":"T"},"model":"m"}`)
}

// runs comes to a turn that runs, and is the answer to the last turn/start.
func (k *talk) runs(turn string) {
	k.t.Helper()
	k.replies(`{"turn":{"id":"` + turn + `"}}`)
	k.notifies("turn/started", turn, `"turn":{"id":"`+turn+`"}`)
}

// ends is the end of a turn.
func (k *talk) ends(turn, status string) []providers.Frame {
	k.t.Helper()
	return k.notifies("turn/completed", turn, fmt.Sprintf(`"turn":{"id":%q,"status":%q}`, turn, status))
}

// wantEnd compares the turn's end, its message by a part of it.
func (k *talk) wantEnd(outcome session.Outcome, code, message string) {
	k.t.Helper()
	end := k.About().End
	if end == nil || end.Outcome != outcome || end.Code != code || !strings.Contains(end.Message, message) {
		k.t.Errorf("the turn ended as %+v, want %s %s %q", end, outcome, code, message)
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
