package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/pintle/pintle/state"
)

// Client is clients/<hash of its id>.json: a client that is to find itself again after its connections, or the supervisor,
// were lost. The supervisor alone writes it.
type Client struct {
	Version   int       `json:"version"`
	ID        string    `json:"id"`
	TokenHash string    `json:"tokenHash"` // SHA-256 of the resume token, which itself is nowhere
	GraceMs   int64     `json:"graceMs"`
	CreatedAt time.Time `json:"createdAt"`
	// Sessions are those on which it may hold leases: noted here before the lease is recorded there.
	Sessions []string `json:"sessions"`
	// GoneAt says that it has ended and that its leases are being freed.
	GoneAt *time.Time `json:"goneAt,omitempty"`
}

// ClientFile is the path of a client's record. An id may have any characters, so its hash is the name.
func ClientFile(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "clients/" + hex.EncodeToString(sum[:])[:32] + ".json"
}

// ReadClient reads the client's record at file. One that is not about the client that its name says, or that anybody or
// nobody could resume, is damaged.
func ReadClient(d *state.Dir, file string) (Client, error) {
	c, err := state.Read[Client](d, file)
	if err != nil {
		return c, err
	}
	hash, err := hex.DecodeString(c.TokenHash)
	switch {
	case err != nil || len(hash) != sha256.Size:
		err = errors.New("it has no token's hash")
	case path.Base(ClientFile(c.ID)) != path.Base(file):
		err = fmt.Errorf("it is about %q", c.ID)
	default:
		return c, nil
	}
	return c, fmt.Errorf("%s: %w: %w", file, state.ErrDamaged, err)
}
