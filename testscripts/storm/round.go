package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// round is one state directory's storm.
type round struct {
	o      options
	n      int
	binary string
	dir    string // all of the round
	home   string // PINTLE_HOME, on a small tmpfs if we may
	log    string // launches, outside of the state directory
	disk   string // the tmpfs, "" without
	repo   string // of which all worktrees are
	kinds  []kind

	mu      sync.Mutex
	orders  []*order
	byKey   map[string]*order
	clients map[*exec.Cmd]bool
	faults  []string // of no order

	kills atomic.Int64
	fullN atomic.Int64 // how often the disk was filled; odd: it is full

	archives, restores atomic.Int64

	talk     talk
	reviving sync.Mutex
	revived  time.Time
}

func newRound(o options, binary, dir string, n int) (*round, error) {
	r := &round{
		o: o, n: n, binary: binary, dir: dir, home: filepath.Join(dir, "m", "h"), log: filepath.Join(dir, "launches"),
		kinds: kinds(), byKey: map[string]*order{}, clients: map[*exec.Cmd]bool{},
	}
	r.talk.stranded = map[string]bool{}
	if err := os.MkdirAll(filepath.Join(dir, "m"), 0o700); err != nil {
		return nil, err
	}
	if err := r.plantAgent(); err != nil {
		return nil, err
	}
	if n%2 == 0 { // every other one has a real disk
		r.mount()
	}
	config := "[deadlines]\nstop_term = \"400ms\"\ninterrupt = \"400ms\"\n[recovery]\ndelay = \"100ms\"\ntries = 50\n"
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	return r, r.plant()
}

// env is the environment of a verb about an attempt.
func (r *round) env(attempt int) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "LANG=C.UTF-8", "PINTLE_HOME=" + r.home,
		"PINTLE_CONFIG=" + filepath.Join(r.dir, "config.toml"), fmt.Sprintf("STORM_ATTEMPT=%d", attempt),
	}
}

// result is how a verb ended.
type result struct {
	code     int // -1: it was killed
	out, err string
	full     bool // the disk was full at some time meanwhile
}

// verbLimit is when a verb counts as hanging.
const verbLimit = 60 * time.Second

// pintle runs a verb, which the havoc may kill.
func (r *round) pintle(attempt int, killable bool, args ...string) result {
	return r.verb(r.env(attempt), killable, args...)
}

func (r *round) verb(env []string, killable bool, args ...string) result {
	ctx, cancel := context.WithTimeout(context.Background(), verbLimit)
	defer cancel()
	before := r.fullN.Load()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, r.binary, args...)
	c.Env, c.Dir, c.Stdout, c.Stderr, c.WaitDelay = env, r.dir, &out, &errs, 5*time.Second
	if err := c.Start(); err != nil {
		return result{code: -2, err: err.Error()}
	}
	if killable {
		r.track(c, true)
	}
	err := c.Wait()
	if killable {
		r.track(c, false)
	}
	res := result{code: c.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
	res.full = before%2 == 1 || r.fullN.Load() != before
	if ctx.Err() != nil {
		res.code, res.err = -3, fmt.Sprintf("hung for %v: %s", verbLimit, res.err)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		res.code, res.err = -3, "its output was held open"
	}
	r.say("%s -> %d %s", strings.Join(args[:min(3, len(args))], " "), res.code, firstLine(res.err))
	return res
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (r *round) track(c *exec.Cmd, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.clients[c] = true
	} else {
		delete(r.clients, c)
	}
}

func (r *round) say(format string, args ...any) {
	if r.o.verbose {
		fmt.Fprintf(os.Stderr, "%s %d: %s\n", time.Now().Format("05.000"), r.n, fmt.Sprintf(format, args...))
	}
}

// run storms for so long, calms everything down and checks it.
func (r *round) run(length time.Duration) (counts, []string) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var all sync.WaitGroup
	for w := range r.o.workers {
		all.Go(func() { r.work(ctx, newDice(r.o.seed, r.n, w)) })
	}
	for n := range visitors {
		v := &visitor{r: r, name: fmt.Sprintf("v%d", n)}
		if n == 0 {
			v.grace = new(int64)
			*v.grace = 300
		}
		all.Go(func() { r.visit(ctx, v, n) })
	}
	var havoc sync.WaitGroup
	havoc.Go(func() { r.killer(ctx, newDice(r.o.seed, r.n, 100)) })
	havoc.Go(func() { r.freezer(ctx, newDice(r.o.seed, r.n, 101)) })
	havoc.Go(func() { r.filler(ctx, newDice(r.o.seed, r.n, 102)) })
	havoc.Go(func() { r.gardener(ctx, newDice(r.o.seed, r.n, 103)) })
	havoc.Go(func() { r.neighbour(ctx, newDice(r.o.seed, r.n, 104)) })
	<-ctx.Done()
	havoc.Wait()
	all.Wait()
	return r.check()
}

// close lets go of the state directory.
func (r *round) close(keep bool) {
	if keep {
		return
	}
	if r.disk != "" {
		for range 100 {
			if err := unmount(r.disk); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	_ = os.RemoveAll(r.dir)
}

// newOrder makes a key.
func (r *round) newOrder(d dice) *order {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &order{key: fmt.Sprintf("k%d", len(r.orders)), kind: r.kinds[d.IntN(len(r.kinds))], spoiled: map[int]string{}, seen: map[int]look{}}
	o.attempts = 1
	r.settleIn(o, d)
	r.orders, r.byKey[o.key] = append(r.orders, o), o
	return o
}

// anyOrder picks one of the newest.
func (r *round) anyOrder(d dice) *order {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.orders) == 0 {
		return nil
	}
	back := min(len(r.orders), 30)
	return r.orders[len(r.orders)-1-d.IntN(back)]
}
