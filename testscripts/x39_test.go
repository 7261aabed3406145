package testscripts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/state"
)

// job notes when it begins and ends.
const job = `echo start $0 >> log; sleep 0.02; echo end $0 >> log`

// Of twenty orders no more than the limit run at any time, each once, in the order in which they were given, however often
// the supervisor is killed while they are given and carried out (X39).
func TestX39_SupervisorKilledAgainAndAgain(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "")
			s.configure(fmt.Sprintf("[limits]\nrunning = %d\n", limit))
			const orders = 20
			for i := 1; i <= orders; i++ {
				s.verb("run", "-d", "--id", fmt.Sprint(i), "-a", "command", "--", "sh", "-c", job, fmt.Sprint(i))
				if i%4 == 0 {
					s.killSupervisor()
				}
			}
			var all []string
			for i := 1; i <= orders; i++ {
				all = append(all, fmt.Sprint(i))
			}
			waits := s.command(append([]string{"wait"}, all...)...) // it has a supervisor started when one died
			if err := waits.Start(); err != nil {
				t.Fatal(err)
			}
			for n := len(s.log()); n < 2*orders; n = len(s.log()) {
				s.killSupervisor()
				s.until("it goes on", func() bool { return len(s.log()) > n })
			}
			if err := waits.Wait(); err != nil {
				t.Errorf("wait: %v", err)
			}
			inOrder(t, s.log(), limit, orders)
			s.quiet()
		})
	}
}

// inOrder checks what jobs have noted. Of jobs that begin at once each may be the first to note it.
func inOrder(t *testing.T, log []string, limit, orders int) {
	t.Helper()
	starts, ends := map[string]int{}, 0
	for _, line := range log {
		what, who, _ := strings.Cut(line, " ")
		if what == "end" {
			ends++
			continue
		}
		starts[who]++
		var i int
		_, _ = fmt.Sscan(who, &i)
		if len(starts)-ends > limit || ends < i-limit || starts[who] > 1 {
			t.Errorf("%d goes on after %d starts and %d ends, started %d times", i, len(starts), ends, starts[who])
		}
	}
	if len(starts) != orders || ends != orders {
		t.Errorf("%d started and %d ended", len(starts), ends)
	}
	if t.Failed() {
		t.Logf("noted: %q", log)
	}
}

// configure adds to the stage's configuration.
func (s *stage) configure(more string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "config.toml")
	was, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(was, more...), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// log is what the jobs have noted so far.
func (s *stage) log() []string {
	data, _ := os.ReadFile(filepath.Join(s.work, "log"))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[:strings.Count(string(data), "\n")]
}

// killSupervisor kills the one that is on record, if it lives.
func (s *stage) killSupervisor() {
	s.t.Helper()
	d, err := state.OpenExisting(s.home)
	if err != nil {
		s.t.Fatal(err)
	}
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = proc.Signal(rec.Identity, syscall.SIGKILL) // it may be dead already
}
