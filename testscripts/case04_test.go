package testscripts

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// many is how many others there are in the end; PINTLE_MANY has it 5,000, which takes half a minute.
func many() []int {
	if os.Getenv("PINTLE_MANY") != "" {
		return []int{512, 5000}
	}
	return []int{512}
}

// A repeat after 512 and after 5,000 other operations: still one launch, and nothing of the others is forgotten
// either (case 4). The others are orders as a verb gives them, and their ends; there are no processes of them.
func TestCase04_RepeatAfterThousandsOfOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	first := []string{"run", "--json", "--id", "first", "-a", "command", "--", "sh", "-c", "echo x >> launches.first; echo made"}
	s.verb(first...)
	given := 0
	for _, n := range many() {
		s.others(given, n)
		given = n
		for _, restart := range []bool{false, true} {
			if restart {
				s.verb("supervise", "restart")
			}
			out, errs := s.verb(first...)
			if !strings.Contains(out, `"replayed":true`) || !strings.Contains(out, `"text":"made\n"`) {
				t.Errorf("after %d others (restart: %v): %s%s", n, restart, out, errs)
			}
			for _, i := range []int{0, n / 2, n - 1} {
				out, errs := s.verb(other(i)...)
				if !strings.Contains(out, `"replayed":true`) {
					t.Errorf("other %d of %d (restart: %v): %s%s", i, n, restart, out, errs)
				}
			}
		}
		ids, _ := s.verb("ps", "-q", "-a")
		if got := strings.Count(ids, "\n"); got != n+1 {
			t.Errorf("%d runs are listed, want %d", got, n+1)
		}
		if s.launches("first") != 1 || s.launches("other") != 0 {
			t.Errorf("%d and %d launches after %d others", s.launches("first"), s.launches("other"), n)
		}
	}
	s.quiet()
}

// other is the order of the i-th other run.
func other(i int) []string {
	return []string{"run", "--json", "--id", fmt.Sprint("o", i), "-a", "command", "--", "sh", "-c", "echo x >> launches.other"}
}

// others gives the orders from the one numbered from to the one before to.
func (s *stage) others(from, to int) {
	s.t.Helper()
	s.verb("supervise", "stop") // it would carry them out
	d, err := state.Open(s.t.Context(), s.home)
	if err != nil {
		s.t.Fatal(err)
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := from + worker; i < to; i += 8 {
				if err := s.record(d, i); err != nil {
					s.t.Errorf("other %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

// record claims an order as the verb does, and records its end; that without a sync, of which there are enough.
func (s *stage) record(d *state.Dir, i int) error {
	words := other(i)
	now, code := time.Now().UTC(), 0
	order := record.Spec{
		ID: words[3], Controller: session.Local, CreatedAt: now,
		Payload: session.Payload{Argv: words[7:], Provider: "command", Cwd: s.work},
	}
	c, err := record.Claim(s.t.Context(), d, order, 0, func(*record.Spec) error { return nil })
	if err != nil {
		return err
	}
	data, err := json.Marshal(record.Status{
		Version: record.Version,
		Execution: api.Execution{
			ID: order.ID, Controller: order.Controller, Provider: "command", Cwd: s.work, Attempt: 1, CreatedAt: now,
			Phase: string(session.Ended), Outcome: string(session.Completed), ExitCode: &code, EndedAt: &now,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(d.Path(record.StatusFile(c.Folder)), data, 0o600)
}
