package fakemodel

import (
	"fmt"
	"time"
)

// sse is an answer as a stream of server-sent events.
type sse struct{ *answer }

// stream begins one.
func (a *answer) stream() sse {
	a.w.Header().Set("Content-Type", "text/event-stream")
	return sse{a}
}

// data sends an event without a name.
func (s sse) data(v any) { s.write(fmt.Appendf(nil, "data: %s\n\n", encode(v))) }

// event sends one that is named as its type says.
func (s sse) event(name string, v object) {
	v["type"] = name
	s.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encode(v)))
}

// stop goes no further with a step.
func (s sse) stop(st step) {
	if st.silent {
		s.hang()
	}
	s.pause(breath)
	s.cut()
}

// breath lets a client read what has come before the connection breaks. Some forget it if both reach them in one moment, and
// when they have read nothing tells.
const breath = 50 * time.Millisecond

// parts sends a text in its pieces. What breaks in the midst ends here.
func (s sse) parts(st step, send func(string)) {
	for i, part := range st.parts() {
		if i > 0 {
			s.pause(st.pause)
		}
		send(part)
	}
	if st.cut == inItem {
		s.stop(st)
	}
}

// thought is the part of a step's thought that comes, "" if there is none. whole says that more follows.
func (st step) thought() (text string, whole bool) {
	if st.cut != inThought {
		return st.reasoning, true
	}
	return firstWord(st.reasoning), false
}

// unbroken goes no further if a step is not to come whole: at once there is no part of an answer.
func (a *answer) unbroken(st step) {
	switch {
	case st.kind == hangBody || st.silent:
		a.hang()
	case st.cut != never:
		a.cut()
	}
}

// plain answers at once with JSON.
func (a *answer) plain(status int, v any) {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.WriteHeader(status)
	a.write(encode(v))
}

// status answers as a step's status says, by what the API makes of it.
func (a *answer) status(st step, refuse func(a *answer, status int, kind, message string)) {
	if st.text != "" {
		a.w.Header().Set("Retry-After", st.text)
	}
	refuse(a, st.number, st.name, fmt.Sprintf("the script says %d", st.number))
}
