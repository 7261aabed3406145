package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Local is the controller of orders that the local user gives.
const Local = "local"

// MaxKey is the longest key, in characters.
const MaxKey = 200

// ErrKey is returned by CheckKey; its message says what is wrong.
var ErrKey = errors.New("bad key")

// Generated reports whether id has the form of one that pintle makes, whole or as a prefix: r- runs, s- sessions,
// w- workspaces, with 16 hex digits, of which 4 or more mean one of them on the command line.
func Generated(id string) bool {
	if len(id) < 2+4 || len(id) > 2+16 || id[1] != '-' || !strings.ContainsRune("rsw", rune(id[0])) {
		return false
	}
	return strings.Trim(id[2:], "0123456789abcdef") == ""
}

// CheckKey accepts a caller's own key (X6): 1 to 200 characters of any Unicode without control
// characters, not blank, not of the form of a generated id.
func CheckKey(key string) error {
	switch {
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: not valid UTF-8", ErrKey)
	case strings.TrimSpace(key) == "":
		return fmt.Errorf("%w: blank", ErrKey)
	case utf8.RuneCountInString(key) > MaxKey:
		return fmt.Errorf("%w: longer than %d characters", ErrKey, MaxKey)
	case strings.ContainsFunc(key, unicode.IsControl):
		return fmt.Errorf("%w: has a control character", ErrKey)
	case Generated(key) || strings.HasPrefix(key, "p-") && Generated("r-"+key[2:]):
		return fmt.Errorf("%w: %s has the form of a generated id", ErrKey, key)
	}
	return nil
}

// Folder is the directory name of an execution's records: a key never becomes a file name as it stands.
func Folder(controller, key string) string {
	sum := sha256.Sum256([]byte(controller + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}
