package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// seat is the runtime's place in a process that sessions share, nil in one of its own.
func (rt *runtime) seat() *seat {
	s, _ := rt.control.(*seat)
	return s
}

// version is the agent's; in a process that was there before, the first session's fold alone was told, and some agents have it
// in their package only.
func (rt *runtime) version() string {
	v := rt.about().Version
	if s := rt.seat(); s != nil && v == "" {
		v = s.version()
	}
	return cmp.Or(v, rt.r.packaged())
}

// alone reports whether the process is to be closed when this session is done with it: nobody else has a part in it, or
// will have.
func (rt *runtime) alone() bool {
	s := rt.seat()
	return s == nil || s.alone()
}

// welcome has others come into the process, once that was greeted.
func (rt *runtime) welcome() {
	s := rt.seat()
	if s == nil || rt.welcomed || !rt.about().Ready && (rt.tenure == nil || !rt.tenure.Joined) {
		return
	}
	rt.welcomed = true
	s.h.greet(rt.about().Version)
}

// siblings reports whether a line of the agent's is known to be about another session's conversation.
func (rt *runtime) siblings(stream providers.Stream, line []byte) bool {
	if !rt.shared || stream != providers.Stdout {
		return false
	}
	a, ok := rt.fold.(providers.Agent)
	if !ok {
		return false
	}
	key := rt.provider.Owner(line)
	return key != "" && !a.Owns(key)
}

// longEnd is how much is looked at, in bytes, of each end of a line that is too long.
const longEnd = 4 << 10

// skip passes over what is left of such a line. If it was not a sibling's, the session's own output cannot be followed any
// more; the process goes on for others, and says how the turn ends.
func (rt *runtime) skip(raw []byte) (n int, events []journal.Event) {
	i := bytes.IndexByte(raw, '\n')
	if n = i + 1; i < 0 {
		n = len(raw)
	}
	rt.long = append(rt.long, raw[:n]...)
	rt.long = slices.Delete(rt.long, longEnd, max(longEnd, len(rt.long)-longEnd))
	if i < 0 {
		return n, nil
	}
	rt.skipping = false
	if rt.siblings(providers.Stdout, rt.long) {
		return n, nil
	}
	rt.broken = fmt.Errorf("%w: over %d bytes", errFrame, max(readSize, int(rt.r.s.o.Config.Limits.FrameBytes)))
	return n, []journal.Event{event("output_lost", map[string]any{"stream": providers.Stdout, "why": rt.broken.Error()})}
}

// forget has the agent end what is left of the session's conversation in its process, and let go of that.
func (rt *runtime) forget() error { return rt.act(providers.Agent.Leave) }

// parts has the run leave a process that goes on for others, once the agent was told.
func (l *ladder) parts() (bool, error) {
	rt := l.r.rt
	switch waiting := len(rt.outbox) > 0; {
	case l.climbing == "part" && rt.let():
		l.parted = true
		return true, nil
	case l.climbing == "part":
		return time.Since(l.over) < l.patience(), nil // else nothing of it is proven to have ended
	case waiting && time.Since(l.over) < closeGrace || rt.alone():
		return false, nil
	}
	l.climbing, l.rungs, l.over = "part", nil, time.Now()
	return true, rt.forget()
}

// patience is how long an agent may take to read what it is told after the turn's end, and to let go of the conversation.
func (l *ladder) patience() time.Duration {
	if l.climbing == "part" {
		return time.Duration(l.r.s.o.Config.Deadlines.Stop)
	}
	return closeGrace
}

// let reports whether the agent has let go of the conversation.
func (rt *runtime) let() bool { return len(rt.outbox) == 0 && rt.about().Left }

// moveOut ends a run whose agent's process goes on for others.
func (r *run) moveOut() (bool, error) {
	at := r.rt.at
	r.rt.left = true
	r.part()
	return r.conclude(at.Out, at.Err, func() record.Verdict { return r.judge(shim.Exit{}) }, nil)
}

// part begins to leave a process that goes on for others. If the agent does not let go of the conversation in time, the
// process is closed.
func (k *keeper) part() {
	k.parting = true
	k.due = time.Now().Add(time.Duration(k.r.s.o.Config.Deadlines.Stop))
	if err := k.rt.forget(); err != nil {
		k.log(err)
	}
}

// parted gives the part back, once the agent was told.
func (k *keeper) parted(ctx context.Context) bool {
	if !k.parting || !k.rt.let() {
		return false
	}
	r := k.r
	k.rt.left, r.rt = true, k.rt
	r.vanished.Store(true)
	defer k.rt.release()
	if !k.tell(ctx, nil, func() error { return nil }) {
		return true
	}
	if err := r.quit(r.st.RuntimeID); err != nil {
		k.log(err)
	}
	return true
}

// quit removes what a run has in a settled runtime: all of it, or its session's part in a shared one, whose last one
// removes the rest. Killed before it is done, the next supervisor does it.
func (r *run) quit(id string) error {
	s, session, folder, proven := r.s, r.st.Session, r.folder, r.proven
	r.proven = false
	if !s.isShared(id) {
		return s.dropRuntime(id)
	}
	h, leave := s.hubOf(id)
	defer leave()
	h.mu.Lock()
	defer h.mu.Unlock()
	t, err := s.tenureOf(id, session)
	switch {
	case err == nil && t.Folder != folder:
		return nil // the session's next run has it
	case err == nil:
		err = ignoreAbsent(os.Remove(s.dir.Path(partFile(id, session))))
	case errors.Is(err, errApart):
		err = nil
	}
	if err != nil {
		return err
	}
	if m := h.members[session]; m != nil && (m.folder == folder || m.folder == "") {
		delete(h.members, session)
	}
	_, _ = h.ack(), h.bound()
	if len(h.members) > 0 {
		return nil
	}
	h.shut()
	if proven || h.over() {
		return s.dropRuntime(id)
	}
	s.evictions.Go(func() { s.evict(s.ctx, id) })
	return nil
}

// over reports whether the process is known to have ended, or never began. h.mu is held.
func (h *hub) over() bool {
	_, err := state.Read[shim.Exit](h.s.dir, shim.ExitFile(h.id))
	return err == nil || h.exit != nil || h.holders > 0 || !h.s.started(h.id)
}

// evict ends a shared process in which nobody has a part any more: the last ones left at once, or were killed leaving.
func (s *Supervisor) evict(ctx context.Context, id string) {
	r := newRun(s, "")
	r.st.RuntimeID, r.kept = id, true
	for tries := 1; ctx.Err() == nil; tries++ {
		over, err := r.evict(ctx, tries >= 3)
		if err != nil {
			s.log.Printf("shared runtime %s: %v", id, err)
		}
		if over {
			return
		}
		r.pause(ctx, retryDelay)
	}
}

// evict ends it, by force if its shim has not answered for long: one that is about to leave does not either.
func (r *run) evict(ctx context.Context, force bool) (over bool, err error) {
	id := r.st.RuntimeID
	rec, err := state.Read[record.Runtime](r.s.dir, record.RuntimeFile(id))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), ignoreAbsent(err)
	}
	if boot, err := proc.BootID(); err != nil || rec.BootID != boot {
		return true, r.s.dropRuntime(id) // nothing of it can be here
	}
	h, leave := r.s.hubOf(id)
	release, err := h.dead()
	switch {
	case err == nil:
		defer leave()
		defer release()
		r.s.sweepDead(id)
		return true, r.s.dropRuntime(id)
	case !errors.Is(err, state.ErrLocked):
		leave()
		return errors.Is(err, fs.ErrNotExist), ignoreAbsent(err)
	}
	seat, hello, err := h.adopt(ctx, r, rec.Socket, leave)
	if err != nil {
		leave()
		if force {
			err = errors.Join(err, r.endShim(ctx))
		}
		return false, err
	}
	defer seat.vanish()
	if hello.Exit == nil && !r.closed(ctx, seat) {
		return false, nil
	}
	return true, r.s.dropRuntime(id)
}

// closed closes a process, and reports whether it ended.
func (r *run) closed(ctx context.Context, s *seat) bool {
	r.shim, r.rt = s.shim(), &runtime{r: r, control: s}
	for _, step := range r.ladderFor("close") {
		if err := r.signal(step.sig); err != nil {
			return false
		}
		for limit := time.After(step.grace); limit != nil; {
			select {
			case ev, ok := <-s.Events():
				if ev.Exit != nil || !ok {
					return ok
				}
			case <-limit:
				limit = nil
			case <-ctx.Done():
				return false
			}
		}
	}
	return false
}
