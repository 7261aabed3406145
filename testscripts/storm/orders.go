package main

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// kind is a sort of command.
type kind struct {
	name   string
	script string // after the line that logs the launch
	text   string // that it prints if nobody disturbs it
	code   int    // the run's exit code if nobody disturbs it
	long   bool   // does not end by itself
}

func kinds() []kind {
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "line %d\n", i)
	}
	return []kind{
		{name: "quick", script: `echo hello`, text: "hello\n"},
		{name: "quick", script: `echo hello`, text: "hello\n"},
		{name: "lines", script: `i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); [ $((i%8)) = 0 ] && sleep 0.05; done; exit 0`, text: lines.String()},
		{name: "fails", script: `echo no; exit 3`, text: "no\n", code: 1},
		{name: "deaf", script: `trap "" TERM INT HUP; i=0; while [ $i -lt 15 ]; do sleep 0.05; i=$((i+1)); done; echo deaf`, text: "deaf\n"},
		{name: "forks", script: `setsid sh -c 'trap "" TERM INT; sleep 300' & setsid -f sleep 300; (setsid env -i sleep 300 &) ; echo forked; sleep 0.1`, text: "forked\n"},
		{name: "flood", script: `i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done`, text: strings.Repeat("0123456789012345678901234567890123456789\n", 3000)},
		{name: "long", script: `echo begun; exec sleep 300`, long: true},
		{name: "longdeaf", script: `trap "" TERM INT; echo begun; setsid sleep 300 & while :; do sleep 0.2; done`, long: true},
	}
}

// order is one key and all that was done to it.
type order struct {
	key     string
	kind    kind
	place   place
	archive bool // at its end (--rm)

	mu       sync.Mutex
	attempts int            // ordered so far
	spoiled  map[int]string // by attempt: why it need not complete
	seen     map[int]look   // by attempt: what somebody was told
	faults   []string
}

// look is an outcome that somebody was told.
type look struct {
	code int
	by   string
}

// argv is the same for all attempts: it is a part of the order's identity.
func (o *order) argv(log string) []string {
	return []string{"sh", "-c", fmt.Sprintf(`echo "$PINTLE_EXECUTION $PINTLE_RUNTIME $$" >> %s; %s%s`, log, o.place.script(o.key), o.kind.script)}
}

func (o *order) attempt() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.attempts
}

// next counts one more attempt and returns its number.
func (o *order) next() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempts++
	return o.attempts
}

// spoil notes that the newest attempt was disturbed. Which one that is, is not known: the verb that should
// have ordered it may have been killed, so every attempt that was not told yet counts.
func (o *order) spoil(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for a := 1; a <= o.attempts; a++ {
		if _, told := o.seen[a]; !told || a >= o.attempts-1 {
			o.spoiled[a] += " " + why
		}
	}
}

func (o *order) spoiledBy(attempt int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spoiled[attempt]
}

// note takes down what a verb told of an attempt's end. Two different tales are a fault.
func (o *order) note(attempt, code int, by string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if was, ok := o.seen[attempt]; ok && was.code != code {
		o.faults = append(o.faults, fmt.Sprintf("changed: attempt %d was %d to %s and %d to %s", attempt, was.code, was.by, code, by))
		return
	}
	o.seen[attempt] = look{code, by}
}

// looks are the outcomes that were told, by attempt.
func (o *order) looks() map[int]look {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.seen)
}

func (o *order) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}
