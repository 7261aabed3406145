package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Remove frees the key of an execution that has ended: its records are moved to archived/ under the lock
// that a claim takes, so that of a removal and a claim one comes first.
func Remove(ctx context.Context, d *state.Dir, folder string) error {
	unlock, err := d.LockRecord(ctx, SpecFile(folder))
	if err != nil {
		return err
	}
	defer unlock()
	st, err := state.Read[Status](d, StatusFile(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	spec, err := SpecOf(d, folder)
	if err != nil {
		return err
	}
	if session.Phase(st.Phase) != session.Ended || st.Attempt < spec.Desired.Attempt {
		return api.E(api.CodeBusy, "%s has not ended", spec.ID).WithNext("pintle stop " + Quote(spec.ID))
	}
	if err := d.Mkdir("archived"); err != nil {
		return err
	}
	to := fmt.Sprintf("%s.removed-%d", folder, time.Now().UnixNano())
	if err := os.Rename(d.Path("executions", folder), d.Path("archived", to)); err != nil {
		return fmt.Errorf("remove %s: %w", spec.ID, err)
	}
	if err := state.SyncDir(d.Path("archived")); err != nil {
		return err
	}
	return state.SyncDir(d.Path("executions"))
}
