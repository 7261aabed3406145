package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pintle/pintle/state"
)

// TrustRecord is trusted/<hash>.json: what the user trusts of one repository. It is of a path, not of what was cloned
// into it: another clone is another repository.
type TrustRecord struct {
	Version    int            `json:"version"`
	Repository string         `json:"repository"` // the common git directory
	Trusted    []TrustedPrint `json:"trusted"`
}

// TrustedPrint is the fingerprint of a .pintle.toml, and since when it is trusted.
type TrustedPrint struct {
	Fingerprint string    `json:"fingerprint"`
	At          time.Time `json:"at"`
}

// TrustFile is the path of a repository's trust record.
func TrustFile(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return "trusted/" + hex.EncodeToString(sum[:16]) + ".json"
}

// Trust records that a fingerprint is trusted in a repository. already: it was.
func Trust(ctx context.Context, d *state.Dir, repository, fingerprint string, now time.Time) (already bool, err error) {
	if err := d.Mkdir("trusted"); err != nil {
		return false, err
	}
	err = state.Update(ctx, d, TrustFile(repository), func(r *TrustRecord) error {
		if r.Version == 0 {
			*r = TrustRecord{Version: Version, Repository: repository}
		}
		if already, err = r.has(repository, fingerprint); err != nil || already {
			return err
		}
		r.Trusted = append(r.Trusted, TrustedPrint{fingerprint, now.UTC()})
		return nil
	})
	return already, err
}

// Trusted reports whether a fingerprint is trusted in a repository. A record that cannot be read trusts nothing: it is
// an error, those of package state.
func Trusted(d *state.Dir, repository, fingerprint string) (bool, error) {
	r, err := state.Read[TrustRecord](d, TrustFile(repository))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return r.has(repository, fingerprint)
}

// has looks for a fingerprint. A record that names another repository was moved here by somebody.
func (r TrustRecord) has(repository, fingerprint string) (bool, error) {
	if r.Repository != repository {
		return false, fmt.Errorf("%s: %w: it is of %q", TrustFile(repository), state.ErrDamaged, r.Repository)
	}
	return slices.ContainsFunc(r.Trusted, func(t TrustedPrint) bool { return t.Fingerprint == fingerprint }), nil
}

// Distrust forgets all that was trusted of a repository, and reports whether there was anything. It is so at once for
// every order that comes later; one that was given before stands.
func Distrust(ctx context.Context, d *state.Dir, repository string) (had bool, err error) {
	if _, err := state.Read[TrustRecord](d, TrustFile(repository)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = state.Update(ctx, d, TrustFile(repository), func(r *TrustRecord) error {
		had = len(r.Trusted) > 0
		*r = TrustRecord{Version: Version, Repository: repository, Trusted: []TrustedPrint{}}
		return nil
	})
	return had, err
}
