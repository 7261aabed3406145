package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
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

// generated are the forms of ids that pintle makes: r- runs, s- sessions, w- workspaces. They carry 16
// hex digits; a prefix of 4 or more means one of them on the command line.
var generated = regexp.MustCompile(`^[rsw]-[0-9a-f]{4,16}$`)

// Generated reports whether id has the form of a generated one, whole or as a prefix.
func Generated(id string) bool { return generated.MatchString(id) }

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
	case Generated(key):
		return fmt.Errorf("%w: %s has the form of a generated id", ErrKey, key)
	}
	return nil
}

// Folder is the directory name of an execution's records: a key never becomes a file name as it stands.
func Folder(controller, key string) string {
	sum := sha256.Sum256([]byte(controller + "\x00" + key))
	return hex.EncodeToString(sum[:16])
}
