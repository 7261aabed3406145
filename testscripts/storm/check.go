package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// check has every order come to its end and looks at what has become of them.
func (r *round) check() (c counts, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	d, err := state.OpenExisting(r.home)
	if err != nil {
		return counts{kills: int(r.kills.Load())}, []string{"state directory: " + err.Error()}
	}
	r.settle(d)
	r.calm(fault)
	before := r.outcomes(d)
	r.killSupervisor()
	r.orphans(&c, fault)
	for _, o := range r.orders {
		r.checkOrder(d, o, before[o.key], &c, fault)
	}
	r.countLaunches(d, &c, fault)
	r.checkTalk(d, &c, fault)
	r.checkTrees(d, &c, fault)
	r.leave(&c, fault)
	c.kills, c.archives, c.restores = int(r.kills.Load()), int(r.archives.Load()), int(r.restores.Load())
	return c, faults
}

// settle ends what would not end by itself and waits for the rest, by the same lines as before: that is
// what a user does.
func (r *round) settle(d *state.Dir) {
	slots := make(chan struct{}, 4)
	var all sync.WaitGroup
	for _, o := range r.orders {
		if r.ended(d, o) {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if o.kind.long {
				r.end(o, "stop")
			}
			r.finish(d, o)
		})
	}
	all.Wait()
}

// finish repeats the newest attempt's line until its end is told.
func (r *round) finish(d *state.Dir, o *order) {
	attempt := o.attempt()
	if r.newest(d, o) < attempt {
		// The verb that should have ordered it was killed, or refused: it was never given.
		attempt = max(1, r.newest(d, o))
	}
	if o.kind.long && r.newest(d, o) == 0 {
		return
	}
	res := r.pintle(attempt, false, r.words(o, attempt)...)
	r.told(o, attempt, res, false, "the last repeat")
	for limit := time.Now().Add(patience); !r.ended(d, o) && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		r.pintle(attempt, false, r.words(o, attempt)...)
	}
}

// newest is the number of the newest attempt on record, 0 for none.
func (r *round) newest(d *state.Dir, o *order) int {
	folder, err := record.Locate(d, record.FolderOf(o.key))
	if err != nil {
		return 0
	}
	spec, err := record.SpecOf(d, folder)
	if err != nil {
		return 0
	}
	return spec.Desired.Attempt
}

// given reports whether the attempt is on record.
func (r *round) given(o *order, attempt int) bool {
	d, err := state.OpenExisting(r.home)
	return err == nil && r.newest(d, o) >= attempt
}

func (r *round) ended(d *state.Dir, o *order) bool {
	e, ok := r.stored(d, o)
	return ok && e.Attempt >= r.newest(d, o)
}

// stored is the outcome on record.
func (r *round) stored(d *state.Dir, o *order) (record.Status, bool) {
	st, err := record.StatusOf(d, record.FolderOf(o.key))
	return st, err == nil && session.Phase(st.Phase) == session.Ended
}

// tale is all that is told of an end.
type tale struct {
	ok            bool
	outcome, text string
	code, attempt int
	past          []api.Attempt
}

func (r *round) tale(d *state.Dir, o *order) (t tale) {
	st, ok := r.stored(d, o)
	if !ok || st.ExitCode == nil {
		return t
	}
	text, _ := record.Text(d, record.FolderOf(o.key))
	return tale{true, st.Outcome, string(text), *st.ExitCode, st.Attempt, st.Attempts}
}

func (r *round) outcomes(d *state.Dir) map[string]tale {
	all := map[string]tale{}
	for _, o := range r.orders {
		all[o.key] = r.tale(d, o)
	}
	return all
}

// checkOrder judges one order's end.
func (r *round) checkOrder(d *state.Dir, o *order, before tale, c *counts, fault func(string, ...any)) {
	where := fmt.Sprintf("key %s (%s, %s)", o.key, o.kind.name, session.Folder(session.Local, o.key))
	for _, f := range o.faults {
		if strings.HasPrefix(f, "lost") || strings.HasPrefix(f, "changed") {
			c.lost++
		}
		fault("%s: %s", where, f)
	}
	if r.newest(d, o) == 0 {
		return // never given: the verb was killed before it had claimed the key
	}
	now := r.tale(d, o)
	lost := func(format string, args ...any) {
		c.lost++
		fault("%s: lost: %s; disturbed by:%s", where, fmt.Sprintf(format, args...), o.spoiledBy(max(1, now.attempt)))
	}
	switch {
	case !now.ok:
		lost("no outcome is stored")
	case now.outcome != before.outcome || now.code != before.code || now.text != before.text:
		lost("it was %s %d and is %s %d", before.outcome, before.code, now.outcome, now.code)
	case now.outcome == "completed" && now.text != o.kind.text && !o.kind.long:
		lost("completed with %d bytes of text, not %d", len(now.text), len(o.kind.text))
	case o.spoiledBy(now.attempt) == "" && now.code != o.kind.code && !(o.place.tree && r.fullN.Load() > 0): // it may have found no room for its files
		lost("nobody disturbed it, and it is %s %d", now.outcome, now.code)
	}
	r.compare(o, now, lost)
}

// compare holds what verbs had been told against the record.
func (r *round) compare(o *order, now tale, lost func(string, ...any)) {
	stored := map[int]int{now.attempt: now.code}
	for _, a := range now.past {
		stored[a.Attempt] = a.ExitCode
	}
	for attempt, was := range o.looks() {
		if code, ok := stored[attempt]; ok && code != was.code && now.ok && was.by == "run" {
			lost("attempt %d was told as %d to %s and is on record as %d", attempt, was.code, was.by, code)
		}
	}
}

// countLaunches counts from the commands' own log. An attempt is launched once at most.
func (r *round) countLaunches(d *state.Dir, c *counts, fault func(string, ...any)) {
	data, _ := os.ReadFile(r.log)
	byKey, byRuntime := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			fault("launch log: %q", line)
			continue
		}
		c.launches++
		byKey[words[0]]++
		byRuntime[words[1]]++
	}
	for runtime, n := range byRuntime {
		if n > 1 {
			c.duplicates += n - 1
			fault("runtime %s was started %d times", runtime, n)
		}
	}
	for _, o := range r.orders {
		if ordered := r.attemptsOf(d, o); byKey[o.key] > ordered {
			c.duplicates += byKey[o.key] - ordered
			fault("key %s: %d attempts were ordered and %d launched", o.key, ordered, byKey[o.key])
		}
	}
}

// attemptsOf is how many attempts of an order there are on record.
func (r *round) attemptsOf(d *state.Dir, o *order) int {
	t := r.tale(d, o)
	if !t.ok {
		return 0
	}
	return len(t.past) + 1
}

// patience is how long what must end may take to do so.
const patience = 20 * time.Second

// orphans are what lives though every order has ended: all but a supervisor.
func (r *round) orphans(c *counts, fault func(string, ...any)) {
	var left []proc.Tagged
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		left = slices.DeleteFunc(r.left(), func(t proc.Tagged) bool { return role(t) == "supervise" })
		if len(left) == 0 {
			return
		}
	}
	r.orphaned(left, c, fault)
}

func (r *round) orphaned(left []proc.Tagged, c *counts, fault func(string, ...any)) {
	c.orphans += len(left)
	for _, t := range left {
		key, _ := proc.Variable(t.PID, "PINTLE_EXECUTION")
		fault("orphan %d of key %s, token %s: %q", t.PID, key, t.Token, t.Args)
	}
}

// left is all that carries the home in its environment, and what cleared that but stands in our directory.
func (r *round) left() []proc.Tagged {
	all := r.tagged()
	known := map[int]bool{}
	for _, t := range all {
		known[t.PID] = true
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if cwd, err := os.Readlink(link); err != nil || cwd != r.dir || known[pid] {
			continue
		}
		if id, err := proc.Identify(pid); err == nil {
			args, _ := proc.Args(pid)
			all = append(all, proc.Tagged{Identity: id, Args: args})
		}
	}
	return all
}

// leave ends the supervisor, after a new one has seen to what the killed one left; then nothing at all is left.
func (r *round) leave(c *counts, fault func(string, ...any)) {
	for _, what := range []string{"restart", "stop"} {
		if res := r.pintle(1, false, "supervise", what); res.code != 0 {
			fault("supervise %s: exit %d: %s", what, res.code, res.err)
		}
	}
	var left []proc.Tagged
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if left = r.left(); len(left) == 0 {
			break
		}
	}
	r.orphaned(left, c, fault)
	r.leftovers(fault)
}

// leftovers are files that nobody needs once all has ended.
func (r *round) leftovers(fault func(string, ...any)) {
	entries, _ := os.ReadDir(filepath.Join(r.home, "runtimes"))
	for _, e := range entries {
		fault("runtimes/%s is left", e.Name())
	}
}
