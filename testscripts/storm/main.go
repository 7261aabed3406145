// Storm gives pintle random orders while it kills, freezes and starves everything that carries them out,
// and then counts what matters: no order carried out twice, no result and no file lost, nothing left running or lying about.
//
//	go run ./testscripts/storm -for 60s -seed 1
//
// Launches are counted from what the commands themselves append to a file outside of the state directory,
// leftovers from /proc by the token that each process of a home carries. Only processes that it started or
// that carry its home's token are signalled. Half of the orders are carried out in worktrees of one repository, which git
// tidies meanwhile and of which another state directory has worktrees too; they are archived and restored. Meanwhile clients
// of the socket share sessions with an agent, lose their connections and come again. The last line of the output has the counts.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	length  time.Duration
	round   time.Duration
	seed    uint64
	kills   int
	workers int
	verbose bool
	keep    bool
}

func main() {
	var o options
	flag.DurationVar(&o.length, "for", time.Minute, "how long to storm")
	flag.DurationVar(&o.round, "round", 15*time.Second, "how long one state directory is used before it is checked")
	flag.Uint64Var(&o.seed, "seed", 1, "of the random numbers; what the kernel schedules is not repeatable")
	flag.IntVar(&o.kills, "kills", 0, "storm until so many were killed, however long it takes")
	flag.IntVar(&o.workers, "workers", 6, "orders at once")
	flag.BoolVar(&o.verbose, "v", false, "say what is done")
	flag.BoolVar(&o.keep, "keep", false, "keep the state directories")
	flag.Parse()
	code, err := storm(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		code = 2
	}
	os.Exit(code)
}

// counts are what a storm ends with.
type counts struct {
	kills, launches, duplicates, lost, orphans int
	worktrees, archives, restores, lostFiles   int
	sessions, messages, repeats                int
}

func (c *counts) add(d counts) {
	c.kills += d.kills
	c.launches += d.launches
	c.duplicates += d.duplicates
	c.lost += d.lost
	c.orphans += d.orphans
	c.worktrees += d.worktrees
	c.archives += d.archives
	c.restores += d.restores
	c.lostFiles += d.lostFiles
	c.sessions += d.sessions
	c.messages += d.messages
	c.repeats += d.repeats
}

func (c counts) String() string {
	return fmt.Sprintf("kills %d, launches %d, duplicates %d, lost results %d, orphans %d, worktrees %d, archives %d, restores %d, lost files %d, sessions %d, messages %d, repeats %d",
		c.kills, c.launches, c.duplicates, c.lost, c.orphans, c.worktrees, c.archives, c.restores, c.lostFiles, c.sessions, c.messages, c.repeats)
}

// storm runs rounds, each in a state directory of its own, until the time is up or enough was killed.
func storm(o options) (code int, err error) {
	base, err := os.MkdirTemp("", "st-")
	if err != nil {
		return 2, err
	}
	binary := filepath.Join(base, "pintle")
	if err := buildPintle(binary); err != nil {
		return 2, err
	}
	var all counts
	broken := 0
	start := time.Now()
	for n := 0; more(o, start, all.kills); n++ {
		r, err := newRound(o, binary, filepath.Join(base, fmt.Sprint(n)), n)
		if err != nil {
			return 2, err
		}
		length := o.round
		if o.kills == 0 {
			length = max(time.Second, min(length, o.length-time.Since(start)))
		}
		c, faults := r.run(length)
		all.add(c)
		broken += len(faults)
		for _, f := range faults {
			fmt.Printf("seed %d round %d: %s (state kept in %s)\n", o.seed, n, strings.Join(strings.Fields(f), " "), r.dir)
		}
		if o.verbose {
			fmt.Fprintf(os.Stderr, "round %d: %v\n", n, c)
		}
		r.close(len(faults) > 0 || o.keep)
	}
	if broken == 0 && !o.keep {
		_ = os.RemoveAll(base)
	}
	fmt.Println(all)
	if broken > 0 {
		return 1, nil
	}
	return 0, nil
}

func more(o options, start time.Time, kills int) bool {
	if o.kills > 0 {
		return kills < o.kills
	}
	return time.Since(start) < o.length-500*time.Millisecond
}

func buildPintle(binary string) error {
	out, err := exec.Command("go", "build", "-o", binary, "github.com/pintle/pintle/cmd/pintle").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build pintle: %w\n%s", err, out)
	}
	return nil
}

// dice are one goroutine's random numbers.
type dice struct{ *rand.Rand }

func newDice(seed uint64, round, who int) dice {
	return dice{rand.New(rand.NewPCG(seed, uint64(round)<<16|uint64(who)))}
}

// between is a random duration.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)))
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
