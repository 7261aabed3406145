package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pintle/pintle/state"
)

// work gives orders and speaks of those that were given.
func (r *round) work(ctx context.Context, d dice) {
	for ctx.Err() == nil {
		o := r.anyOrder(d)
		roll := d.IntN(100)
		switch {
		case o == nil || roll < 45:
			r.begin(r.newOrder(d), d)
		case roll < 60:
			r.repeat(o)
		case roll < 64:
			r.conflict(o)
		case roll < 72:
			r.end(o, "stop")
		case roll < 77:
			r.end(o, "interrupt")
		case roll < 82:
			r.again(o)
		case roll < 90:
			r.archive(o, d)
		case roll < 94:
			r.restore(o)
		case roll < 95:
			r.collect(d)
		case roll < 98:
			r.readers(o, d)
		default:
			sleep(ctx, d.between(time.Millisecond, 100*time.Millisecond))
		}
	}
}

// words are a run verb of an order.
func (r *round) words(o *order, attempt int, more ...string) []string {
	words := append([]string{"run", "--id", o.key, "--env", "STORM_ATTEMPT"}, more...)
	words = append(words, o.place.words...)
	if o.archive {
		words = append(words, "--rm")
	}
	if attempt > 1 {
		words = append(words, "--attempt", fmt.Sprint(attempt))
	}
	return append(append(words, "-a", "command", "--"), o.argv(r.log)...)
}

// begin gives an order, until somebody has noted it: its verb may be killed at any time.
func (r *round) begin(o *order, d dice) {
	var more []string
	if o.kind.long || d.IntN(3) == 0 {
		more = append(more, "-d")
	}
	if len(more) == 0 && d.IntN(10) == 0 {
		r.interrupted(o, d)
		return
	}
	res := r.pintle(1, true, r.words(o, 1, more...)...)
	r.told(o, 1, res, len(more) > 0, "run")
}

// told judges what a run verb said of an attempt.
func (r *round) told(o *order, attempt int, res result, detached bool, by string) {
	switch {
	case res.code == -1: // killed
	case detached && res.code == 0:
	case res.code == 0 || res.code == 1 && strings.Contains(res.err, ": failed") || res.code == 8 || res.code == 13 || res.code == 14:
		o.note(attempt, res.code, by)
		r.checkText(o, attempt, res, by)
	case res.code == 6 && attempt > 1 && strings.Contains(res.err, "archived"): // nothing goes on in what is archived
	case res.code == 2 && o.place.guest && strings.Contains(res.err, "no such directory"): // it was archived before
	case res.code == 11 && res.full, res.code == 12 && res.full:
	case res.code == 1 && res.full && strings.Contains(res.err, "no space"):
	default:
		o.fault("%s of attempt %d: exit %d: %s", by, attempt, res.code, res.err)
	}
}

// checkText compares what a verb printed with what the command says, if nobody disturbed it.
func (r *round) checkText(o *order, attempt int, res result, by string) {
	if res.code == 0 && res.out != o.kind.text && !o.kind.long {
		o.fault("lost: %s of attempt %d printed %d bytes, want %d", by, attempt, len(res.out), len(o.kind.text))
	}
}

// repeat joins or replays.
func (r *round) repeat(o *order) {
	if o.kind.long && o.spoiledBy(o.attempt()) == "" {
		return // it would wait for long
	}
	attempt := o.attempt()
	if o.kind.long && len(o.seen) == 0 {
		return
	}
	given := r.given(o, attempt)
	res := r.pintle(attempt, true, r.words(o, attempt)...)
	if !given || o.attempt() != attempt {
		return // it may have joined an earlier attempt that went on, or another was ordered meanwhile: whose result this is cannot be told
	}
	r.told(o, attempt, res, false, "repeat")
}

// conflict gives another command under the same key, once it is taken.
func (r *round) conflict(o *order) {
	d, err := state.OpenExisting(r.home)
	if err != nil || r.newest(d, o) == 0 {
		return
	}
	res := r.pintle(1, true, "run", "--id", o.key, "--env", "STORM_ATTEMPT", "-d", "-C", r.dir, "-a", "command", "--", "true")
	if res.code != 6 && res.code != -1 && !res.full {
		o.fault("conflict: exit %d: %s", res.code, res.err)
	}
}

// end stops or interrupts, and the proof must hold.
func (r *round) end(o *order, verb string) {
	o.spoil(verb)
	defer o.spoil(verb) // an attempt that is ordered before the verb comes to it is the one that ends
	res := r.pintle(1, true, verb, o.key)
	ok := []int{0, -1, 4} // 4: whoever should have ordered it was killed
	if res.full {
		ok = append(ok, 11, 12, 1)
	}
	if !slices.Contains(ok, res.code) {
		o.fault("%s: exit %d: %s", verb, res.code, res.err)
	}
}

// again orders one more attempt.
func (r *round) again(o *order) {
	if o.attempt() >= 3 {
		return
	}
	attempt := o.next()
	more := []string{"-d"}
	res := r.pintle(attempt, true, r.words(o, attempt, more...)...)
	if res.code == 8 || res.code == 0 || res.code == -1 || res.full || res.code == 6 && strings.Contains(res.err, "archived") {
		return
	}
	o.fault("attempt %d: exit %d: %s", attempt, res.code, res.err)
}

// interrupted gives an order and then has it cancelled from the terminal, so to say.
func (r *round) interrupted(o *order, d dice) {
	o.spoil("SIGINT")
	defer o.spoil("SIGINT")
	wait := d.between(time.Millisecond, 200*time.Millisecond)
	c := exec.Command(r.binary, r.words(o, 1)...)
	c.Env, c.Dir = r.env(1), r.dir
	if c.Start() != nil {
		return
	}
	time.Sleep(wait)
	_ = c.Process.Signal(syscall.SIGINT)
	done := make(chan struct{})
	go func() { _ = c.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(verbLimit):
		_ = c.Process.Kill()
		o.fault("SIGINT: the verb did not end in %v", verbLimit)
	}
}

// readers must always answer.
func (r *round) readers(o *order, d dice) {
	verb := [][]string{{"ps", "-a"}, {"show", o.key}, {"logs", o.key}, {"supervise", "status"}}[d.IntN(4)]
	res := r.pintle(1, true, verb...)
	ok := []int{0, -1, 4}
	if verb[0] == "supervise" {
		ok = append(ok, 12) // it was asked just when it was killed
	}
	if !slices.Contains(ok, res.code) && !res.full {
		o.fault("%v: exit %d: %s", verb, res.code, res.err)
	}
}
