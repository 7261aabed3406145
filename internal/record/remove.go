package record

import (
	"context"
	"fmt"
	"time"

	"github.com/pintle/pintle/state"
)

// Remove frees the key of an execution that has ended, archived or not: its records are moved, under a name of which no
// key is found, in archived/, under the lock that a claim takes, so that of a removal and a claim one comes first.
func Remove(ctx context.Context, d *state.Dir, folder string) error {
	hash := hashOf(folder)
	return locked(ctx, d, hash, func() error {
		folder, err := Locate(d, hash)
		if err != nil {
			return err
		}
		if !IsArchived(folder) { // what is archived has ended
			if err := restful(d, folder); err != nil {
				return err
			}
		}
		return relocate(d, folder, fmt.Sprintf("%s.removed-%d", inArchive(hash), time.Now().UnixNano()))
	})
}
