package proc

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const tokenVariable = "PROC_TEST_TOKEN"

func withValue(value string) func(string) bool { return func(v string) bool { return v == value } }

func identities(tagged []Tagged) (ids []Identity) {
	for _, t := range tagged {
		ids = append(ids, t.Identity)
	}
	return ids
}

// An agent's tree: all ignore SIGTERM and SIGHUP, one is in a session of its own, one is an orphan there,
// one has cleared its environment as well.
const stubbornTree = `
trap "" TERM HUP INT
sleep 1000 &
setsid sleep 1000 &
(setsid sleep 1000 &)
(env -i setsid sleep 1000 &)
exec sleep 1000`

func TestCase9_KillAllEndsSetsidTermIgnoringTree(t *testing.T) {
	if err := BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	leader := start(t, Spawn{
		Args:   []string{"/bin/sh", "-c", stubbornTree},
		Env:    []string{tokenVariable + "=case9", "PATH=/usr/bin:/bin"},
		Setsid: true,
	})
	find := func() ([]Identity, error) {
		found, err := Descendants(os.Getpid(), nil)
		if err != nil {
			return nil, err
		}
		tagged, err := WithToken(tokenVariable, withValue("case9"))
		return append(found, identities(tagged)...), err
	}
	all := sleepers(t, 5)
	for _, id := range all {
		if err := Signal(id, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	if err := SignalGroup(leader.PID, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if left, err := KillAll(t.Context(), find); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, id := range all {
		if got := id.Liveness(); got != Dead {
			t.Errorf("process %d is %v", id.PID, got)
		}
	}
}

// sleepers waits until n processes below us have become sleep, and so the whole tree stands.
func sleepers(t *testing.T, n int) (all []Identity) {
	t.Helper()
	waitFor(t, "the whole tree stands", func() bool {
		all, _ = Descendants(os.Getpid(), func(_ Stat, args []string) bool { return false })
		asleep := 0
		for _, id := range all {
			if args, _ := Args(id.PID); len(args) > 0 && args[0] == "sleep" {
				asleep++
			}
		}
		return asleep == n && len(all) == n
	})
	return all
}

func TestCase9_KillAllEndsATreeThatForksMeanwhile(t *testing.T) {
	if err := BecomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	start(t, Spawn{
		Args: []string{"/bin/sh", "-c", `relay() { (sleep 0.01; relay) & }; relay; relay; wait`},
		Env:  []string{tokenVariable + "=relay", "PATH=/usr/bin:/bin"},
	})
	find := func() ([]Identity, error) {
		tagged, err := WithToken(tokenVariable, withValue("relay"))
		return identities(tagged), err
	}
	if left, err := KillAll(t.Context(), find); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestCase10_SameNameOtherToken_NotFound(t *testing.T) {
	ours := startSleep(t, tokenVariable+"=home1.a")
	others := []Identity{
		startSleep(t, tokenVariable+"=home2.a"), startSleep(t, tokenVariable+"=home1.ab"),
		startSleep(t, "X"+tokenVariable+"=home1.a"), startSleep(t, "X="+tokenVariable+"=home1.a"), startSleep(t),
	}
	found, err := WithToken(tokenVariable, withValue("home1.a"))
	want := []Tagged{{Identity: ours, Token: "home1.a", Args: []string{"/bin/sleep", "1000"}}}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if left, err := KillAll(t.Context(), func() ([]Identity, error) {
		found, err := WithToken(tokenVariable, withValue("home1.a"))
		return identities(found), err
	}); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, id := range others {
		if got := id.Liveness(); got != Alive {
			t.Errorf("somebody else's process is %v", got)
		}
	}
	wantGone(t, ours)
}

func TestR9_TokenIsFoundByHome(t *testing.T) {
	stray := startSleep(t, tokenVariable+"=home1.r1")
	startSleep(t, tokenVariable+"=home10.r1")
	found, err := WithToken(tokenVariable, func(v string) bool { return strings.HasPrefix(v, "home1.") })
	if diff := cmp.Diff([]Identity{stray}, identities(found)); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestWithToken_LeavesOutZombies(t *testing.T) {
	id := startSleep(t, tokenVariable+"=zombie")
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := NextExited(); err != nil {
		t.Fatal(err)
	}
	if found, err := WithToken(tokenVariable, withValue("zombie")); err != nil || len(found) > 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	if below, err := Descendants(os.Getpid(), nil); err != nil || len(below) > 0 {
		t.Errorf("below %+v, %v", below, err)
	}
}

// finder returns the given answers one by one, then none, and counts the looks.
type finder struct {
	answers [][]Identity
	looks   int
}

func (f *finder) find() ([]Identity, error) {
	f.looks++
	if f.looks > len(f.answers) {
		return nil, nil
	}
	return f.answers[f.looks-1], nil
}

func TestKillAll_LooksTwiceOnceItFoundAny(t *testing.T) {
	missed := startSleep(t)
	tests := map[string]struct {
		f     finder
		looks int
	}{
		"never any":              {finder{}, 1},
		"one":                    {finder{answers: [][]Identity{{startSleep(t)}}}, 3},
		"one missed in one look": {finder{answers: [][]Identity{{startSleep(t)}, nil, {missed}}}, 5},
	}
	for name, tt := range tests {
		if left, err := KillAll(t.Context(), tt.f.find); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
		if tt.f.looks != tt.looks {
			t.Errorf("%s: looked %d times, want %d", name, tt.f.looks, tt.looks)
		}
	}
	wantGone(t, missed)
}

func TestKillAll_NamesOnceWhatIsLeft(t *testing.T) {
	id := startSleep(t)
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	left, err := KillAll(t.Context(), func() ([]Identity, error) { return []Identity{self, id, self}, nil })
	if !errors.Is(err, ErrRefused) {
		t.Errorf("it was told to kill itself: %v, want ErrRefused", err)
	}
	if len(left) == 0 || left[0] != self {
		t.Errorf("left %v, want %v first", left, self)
	}
	if err := Await(t.Context(), id); err != nil {
		t.Errorf("one that cannot be killed saved the others: %v", err)
	}
}

func TestKillAll_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	looks := 0
	_, err := KillAll(ctx, func() ([]Identity, error) {
		if looks++; looks == 3 {
			cancel()
		}
		return []Identity{startSleep(t)}, nil // there is always one more
	})
	if err != nil || looks != 3 {
		t.Errorf("%d looks, %v; want 3 and nil", looks, err)
	}
}

// An agent may have started a setuid program. Here we are the ones who lose our rights, on one thread.
func TestKillAll_NamesWhatItMayNotSignal(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	id := startSleep(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var left []Identity
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			err = errno
			return
		}
		left, err = KillAll(ctx, func() ([]Identity, error) { return []Identity{id, id}, nil })
	})
	wg.Wait()
	if diff := cmp.Diff([]Identity{id}, left); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got := id.Liveness(); got != Alive {
		t.Errorf("it is %v: this proves nothing", got)
	}
}

func TestKillAll_ReportsThatNobodyCouldLook(t *testing.T) {
	broken := errors.New("broken")
	if _, err := KillAll(t.Context(), func() ([]Identity, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
}

func TestDescendants_SparesATreeAtItsTop(t *testing.T) {
	spared := start(t, Spawn{Args: []string{"/bin/sh", "-c", "sleep 1000 & wait", "spared"}, Env: []string{"PATH=/bin:/usr/bin"}})
	other := startSleep(t)
	waitFor(t, "the spared one has a child", func() bool {
		below, err := Descendants(spared.PID, nil)
		return err == nil && len(below) == 1
	})
	spare := func(st Stat, args []string) bool {
		return st.PID == spared.PID && len(args) == 4 && args[3] == "spared"
	}
	found, err := Descendants(os.Getpid(), spare)
	if diff := cmp.Diff([]Identity{other}, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// Where the kernel keeps no lists of children, a scan finds the same.
func TestDescendants_ListsAndScanAgree(t *testing.T) {
	parent := start(t, Spawn{Args: []string{"/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait"}, Env: []string{"PATH=/bin:/usr/bin"}})
	waitFor(t, "both children", func() bool { return len(childPIDs(parent.PID)) == 2 })
	scanned, err := scannedChildren()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{os.Getpid(), parent.PID} {
		if diff := cmp.Diff(pidsOf(listedChildren(os.Getpid(), pid)), pidsOf(scanned(pid))); diff != "" {
			t.Errorf("children of %d (-listed +scanned)\n%s", pid, diff)
		}
	}
}

func pidsOf(stats []Stat) map[int]bool {
	set := map[int]bool{}
	for _, st := range stats {
		set[st.PID] = true
	}
	return set
}

// Pids that were reused during a scan can make a table that runs in a circle.
func TestWalk_EndsInACircle(t *testing.T) {
	table := map[int][]Stat{1: {{PID: 2}, {PID: 2}}, 2: {{PID: 3}}, 3: {{PID: 2}, {PID: 1}}}
	var visited []int
	walk(1, func(pid int) []Stat { return table[pid] }, func(st Stat) bool {
		visited = append(visited, st.PID)
		return true
	})
	if diff := cmp.Diff([]int{2, 3}, visited); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func BenchmarkWithToken(b *testing.B) {
	startSleep(b, tokenVariable+"=bench")
	for b.Loop() {
		if found, err := WithToken(tokenVariable, withValue("bench")); err != nil || len(found) != 1 {
			b.Fatal(found, err)
		}
	}
}
