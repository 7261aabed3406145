package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

func TestMatches(t *testing.T) {
	have := map[string]string{"ci": "yes", "empty": ""}
	tests := []struct {
		want map[string]string
		yes  bool
	}{
		{nil, true},
		{map[string]string{"ci": "yes"}, true},
		{map[string]string{"ci": "yes", "empty": ""}, true},
		{map[string]string{"ci": "no"}, false},
		{map[string]string{"ci": "yes", "other": ""}, false}, // absent is not empty
	}
	for _, tt := range tests {
		if got := Matches(have, tt.want); got != tt.yes {
			t.Errorf("%v: %v, want %v", tt.want, got, tt.yes)
		}
	}
}

// The values that come with an order are for the attempt that is wanted; those that it may have begun with stay, and
// those that come for the next attempt are there when this one ends (E4).
func TestE4_ValuesAreBroughtForAnAttempt(t *testing.T) {
	s := stand(t)
	r := s.claimed(t, func(o *record.Spec) { o.Environment.Names = []string{"FOO"} })
	if _, missing := r.environment(); !cmp.Equal(missing, []string{"FOO"}) || r.provided([]string{"FOO"}) {
		t.Fatalf("missing %v", missing)
	}
	bring := func(value map[string]string) {
		t.Helper()
		if err := s.bring(r.folder, api.Create{ID: "k", Environment: value}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want string) {
		t.Helper()
		env, missing := r.environment()
		if env.Vars["FOO"] != want || len(missing) > 0 || !r.provided([]string{"FOO"}) {
			t.Errorf("FOO is %q, missing %v, want %q", env.Vars["FOO"], missing, want)
		}
	}
	bring(map[string]string{"BAR": "not what is needed"})
	bring(map[string]string{"FOO": "first"})
	has("first")
	bring(map[string]string{"FOO": "second"})
	has("first") // it may have begun with that one

	code := 1
	r.st.Outcome, r.st.ExitCode = string(session.Failed), &code
	if err := r.save(session.Ended); err != nil {
		t.Fatal(err)
	}
	if err := record.Retry(t.Context(), s.dir, r.folder, "", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	bring(map[string]string{"FOO": "third"})
	r.finish(false)
	has("third") // it came for the next attempt
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	r.st.Attempt = 2
	r.done, r.quitted = make(chan struct{}), make(chan struct{})
	r.finish(false)
	if _, ok := s.envs[r.folder]; ok {
		t.Error("the values of an attempt that is over are kept")
	}
}

// An execution has not ended while its newest attempt has not; what cannot be read is neither.
func TestUnended(t *testing.T) {
	s := stand(t)
	r := s.order(t, nil)
	check := func(what string, want bool) {
		t.Helper()
		if got, err := s.unended(r.folder); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	check("ordered", true)
	if err := r.claim(); err != nil {
		t.Fatal(err)
	}
	check("claimed", true)
	r.st.Outcome = string(session.Failed)
	if err := r.save(session.Ended); err != nil {
		t.Fatal(err)
	}
	check("ended", false)
	if err := record.Retry(t.Context(), s.dir, r.folder, "", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	check("ordered again", true)
	if err := os.WriteFile(s.dir.Path(record.StatusFile(r.folder)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if open, err := s.unended(r.folder); open || !errors.Is(err, state.ErrDamaged) {
		t.Errorf("damaged: %v, %v", open, err)
	}
	if open, err := s.unended("none"); open || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v, %v", open, err)
	}
}

// A supervisor is idle once it had neither clients nor runs for as long as the configuration says.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stand(t)
		s.count(1)
		time.Sleep(time.Hour)
		if s.idle() {
			t.Error("idle with a client")
		}
		s.count(-1)
		s.runs["k"] = &run{}
		time.Sleep(time.Hour)
		if s.idle() {
			t.Error("idle with a run")
		}
		delete(s.runs, "k")
		time.Sleep(10*time.Minute - time.Nanosecond)
		if s.idle() {
			t.Error("idle too early")
		}
		time.Sleep(time.Nanosecond)
		if !s.idle() {
			t.Error("not idle after 10 minutes")
		}
	})
}

// The epoch rises with each supervisor, also over a record that cannot be read (case 7).
func TestCase07_NextEpoch(t *testing.T) {
	s := stand(t)
	if got := s.nextEpoch(); got != 1 {
		t.Errorf("the first epoch is %d", got)
	}
	if err := state.Put(t.Context(), s.dir, File, Record{Version: state.RecordVersion, Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	if got := s.nextEpoch(); got != 8 {
		t.Errorf("epoch %d follows 7", got)
	}
	if err := os.WriteFile(s.dir.Path(File), []byte(`{"version":1,"epo`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.nextEpoch(); got < 1e12 {
		t.Errorf("epoch %d follows what cannot be read", got)
	}
}

// Errors of the state directory cross the wire with their codes; one that has a code keeps it.
func TestCoded(t *testing.T) {
	tests := map[api.Code]error{
		api.CodeCorrupt:  state.ErrDamaged,
		api.CodeNewer:    state.ErrNewer,
		api.CodeFull:     state.ErrFull,
		api.CodeInternal: errors.New("anything else"),
		api.CodeBusy:     api.E(api.CodeBusy, "busy: %w", state.ErrFull),
	}
	for want, err := range tests {
		if got := api.CodeOf(coded(err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	if err := coded(nil); err != nil {
		t.Error(err)
	}
}
