package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Tombstone is what is left of an archived execution whose result has expired (X36): enough that its key never launches
// again.
type Tombstone struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Controller string    `json:"controller"`
	Provider   string    `json:"provider"`
	Session    string    `json:"session,omitempty"` // with its directory: a message to it is compared by both
	Cwd        string    `json:"cwd,omitempty"`
	Payload    string    `json:"payload"` // its fingerprint
	Attempt    int       `json:"attempt"`
	Outcome    string    `json:"outcome"`
	ExitCode   int       `json:"exitCode"`
	CreatedAt  time.Time `json:"createdAt"`
	EndedAt    time.Time `json:"endedAt"`
	ArchivedAt time.Time `json:"archivedAt"`
}

// TombstoneFile is the path of an archived execution's tombstone.json.
func TombstoneFile(folder string) string { return dirOf(folder) + "/tombstone.json" }

// execution is what a tombstone still tells.
func (t Tombstone) execution() api.Execution {
	return api.Execution{
		ID: t.ID, Controller: t.Controller, Session: t.Session, Provider: t.Provider, Cwd: t.Cwd,
		Phase: string(session.Ended), Outcome: t.Outcome,
		ExitCode: &t.ExitCode, Attempt: t.Attempt, CreatedAt: t.CreatedAt, EndedAt: &t.EndedAt, ArchivedAt: &t.ArchivedAt, ResultExpired: true,
	}
}

// Fingerprint is the hash of a payload.
func Fingerprint(p session.Payload) string {
	data, _ := json.Marshal(p) // strings and numbers only: cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Archive moves the records of an execution that has ended to archived/, under the lock that a claim takes, so that of
// a claim and an archiving one comes first. Its status says already when it was archived. A repeat does nothing. With
// CodeBusy comes back that an attempt was ordered which has not ended.
func Archive(ctx context.Context, d *state.Dir, hash string) error {
	return locked(ctx, d, hash, func() error {
		if there, err := holds(d, hash); err != nil || !there {
			return err
		}
		if err := restful(d, hash); err != nil {
			return err
		}
		crash.At("record.archive")
		return relocate(d, hash, inArchive(hash))
	})
}

// Unarchive moves them back. A repeat does nothing, and so it does for one whose result has expired.
func Unarchive(ctx context.Context, d *state.Dir, hash string) error {
	return locked(ctx, d, hash, func() error {
		if _, err := os.Stat(d.Path(TombstoneFile(inArchive(hash)))); err == nil {
			return nil // also where the rest of it has not gone yet
		}
		_, err := os.Stat(d.Path(SpecFile(inArchive(hash))))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("bring back %s: %w", hash, err)
		}
		crash.At("record.unarchive")
		return relocate(d, inArchive(hash), hash)
	})
}

// Expire leaves a tombstone of an archived execution, and removes the rest of its folder. Killed in between, the
// tombstone counts and a repeat removes the rest. It reports how many bytes went, or would with dry.
func Expire(ctx context.Context, d *state.Dir, hash string, dry bool) (size int64, err error) {
	folder := inArchive(hash)
	err = locked(ctx, d, hash, func() error {
		if err := inter(ctx, d, folder, dry); err != nil {
			return err
		}
		// The status goes last: by it what is left to expire is found.
		for _, file := range []string{TextFile(folder), SpecFile(folder), StatusFile(folder)} {
			info, err := os.Stat(d.Path(file))
			if err != nil {
				continue // no text, say
			}
			size += info.Size()
			if dry {
				continue
			}
			crash.At("record.expire")
			if err := os.Remove(d.Path(file)); err != nil {
				return fmt.Errorf("expire %s: %w", hash, err)
			}
		}
		return nil
	})
	return size, err
}

// inter writes the tombstone, once.
func inter(ctx context.Context, d *state.Dir, folder string, dry bool) error {
	if _, err := state.Read[Tombstone](d, TombstoneFile(folder)); !errors.Is(err, fs.ErrNotExist) || dry {
		return ignoreAbsent(err)
	}
	crash.At("record.expiring")
	spec, err := SpecOf(d, folder)
	if err != nil {
		return err
	}
	st, err := state.Read[Status](d, StatusFile(folder))
	if err != nil {
		return err
	}
	t := Tombstone{
		Version: Version, ID: spec.ID, Controller: spec.Controller, Provider: spec.Payload.Provider,
		Session: st.Session, Cwd: st.Cwd,
		Payload: Fingerprint(spec.Payload), Attempt: st.Attempt, Outcome: st.Outcome, CreatedAt: spec.CreatedAt,
	}
	if st.ExitCode != nil {
		t.ExitCode = *st.ExitCode
	}
	if st.EndedAt != nil {
		t.EndedAt = *st.EndedAt
	}
	if st.ArchivedAt != nil {
		t.ArchivedAt = *st.ArchivedAt
	}
	return state.Put(ctx, d, TombstoneFile(folder), t)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// locked does something under the lock of a key.
func locked(ctx context.Context, d *state.Dir, hash string, do func() error) error {
	unlock, err := d.LockRecord(ctx, lockOf(hash))
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// restful refuses what has not ended.
func restful(d *state.Dir, folder string) error {
	spec, err := SpecOf(d, folder)
	if err != nil {
		return err
	}
	st, err := state.Read[Status](d, StatusFile(folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if session.Phase(st.Phase) != session.Ended || st.Attempt < spec.Desired.Attempt {
		return api.E(api.CodeBusy, "%s has not ended", spec.ID).WithNext("pintle stop " + Quote(spec.ID))
	}
	return nil
}

// relocate renames a folder, durably. Killed in between, it is in one of the two places.
func relocate(d *state.Dir, from, to string) error {
	if err := d.Mkdir(archivedDir); err != nil {
		return err
	}
	if err := os.Rename(d.Path(dirOf(from)), d.Path(dirOf(to))); err != nil {
		return fmt.Errorf("move %s: %w", from, err)
	}
	crash.At("record.moved")
	for _, dir := range []string{dirOf(to), dirOf(from)} {
		if err := state.SyncDir(filepath.Dir(d.Path(dir))); err != nil {
			return err
		}
	}
	return nil
}
