package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Who drives a run is told by the locks alone, whatever the records say.
func TestOwnerOf(t *testing.T) {
	uncertain := &api.WaitingFor{Kind: "uncertain"}
	tests := []struct {
		name             string
		supervisor, shim bool // hold their locks
		runtime          bool // is on record
		w                *api.WaitingFor
		want             api.Owner
	}{
		{"nothing", false, false, false, nil, api.Owner{Kind: "nobody"}},
		{"not begun", true, false, false, nil, api.Owner{Kind: "supervisor"}},
		{"all", true, true, true, nil, api.Owner{Kind: "supervisor"}},
		{"its shim alone", false, true, true, nil, api.Owner{Kind: "shim", PID: 7}},
		{"a dead shim", false, false, true, nil, api.Owner{Kind: "nobody"}},
		{"a frozen shim", true, true, true, uncertain, api.Owner{Kind: "uncertain", PID: 7}},
		{"one that died since", true, false, true, uncertain, api.Owner{Kind: "nobody"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := state.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
			if err != nil {
				t.Fatal(err)
			}
			st := record.Status{Version: record.Version}
			if tt.runtime {
				st.RuntimeID = "x-1"
				put(t, d, shim.AgentFile("x-1"), shim.Agent{Version: record.Version, Shim: proc.Identity{PID: 7}})
				lockIf(t, d, shim.LockFile("x-1"), tt.shim)
			}
			put(t, d, record.StatusFile("f"), st)
			lockIf(t, d, supervisor.LockFile, tt.supervisor)
			got := ownerOf(d, "f", api.Execution{WaitingFor: tt.w})
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func put(t *testing.T, d *state.Dir, file string, rec any) {
	t.Helper()
	if err := os.MkdirAll(d.Path(filepath.Dir(file)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := state.Put(t.Context(), d, file, rec); err != nil {
		t.Fatal(err)
	}
}

// lockIf makes a lock's file, and holds it until the end of the test.
func lockIf(t *testing.T, d *state.Dir, file string, held bool) {
	t.Helper()
	unlock, err := state.TryLock(d.Path(file))
	if err != nil {
		t.Fatal(err)
	}
	if held {
		t.Cleanup(unlock)
		return
	}
	unlock()
}
