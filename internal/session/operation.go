package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How far the time in an operation id may be from now (F4), for ids that were not seen before.
const (
	OperationAge   = 24 * time.Hour
	OperationAhead = 5 * time.Minute
)

// What a mutating request is refused with. Messages say what is wrong; the caller gives them the wire's codes.
var (
	// ErrParams: no fingerprint can be made of the params. Fingerprint and ParseExpected return it.
	ErrParams = errors.New("bad params")
	// ErrOperation: the operation id is none, or too far ahead, or the fingerprint that came with it is not
	// the request's. CheckOperation and Check return it; nothing was done.
	ErrOperation = errors.New("bad operation")
	// ErrOperationExpired: a receipt of this id may have been forgotten, so that nobody knows whether it was
	// done. CheckOperation and Check return it.
	ErrOperationExpired = errors.New("operation expired")
	// ErrOperationConflict: the operation id has a receipt of another request. Check returns it.
	ErrOperationConflict = errors.New("operation conflict")
	// ErrStaleFence: the session's fence is not the expected one. Check returns it; the caller names the current one.
	ErrStaleFence = errors.New("stale fence")
	// ErrNoSession: there is no such session. Check returns it.
	ErrNoSession = errors.New("no such session")
)

// notFields are the params that say how a request is to be carried out and not what it asks for; the
// session stands beside the fields.
var notFields = []string{"operationId", "expectedFence", "fingerprint", "session"}

// Fingerprint is what is equal for two requests that ask for the same (F2): hex SHA-256 of canonical JSON
// {fields, method, sessionId}.
func Fingerprint(method, sessionID string, params json.RawMessage) (string, error) {
	fields := map[string]any{}
	if len(bytes.TrimSpace(params)) > 0 {
		value, err := decode(params)
		if err != nil {
			return "", err
		}
		members, ok := value.(map[string]any)
		if !ok && value != nil {
			return "", fmt.Errorf("%w: no object", ErrParams)
		}
		for name, member := range members {
			fields[name] = member
		}
	}
	for _, name := range notFields {
		delete(fields, name)
	}
	var b bytes.Buffer
	if err := writeObject(&b, map[string]any{"fields": fields, "method": method, "sessionId": sessionID}); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// NewOperation makes an operation id: 13 digits of milliseconds, 32 hex digits.
func NewOperation(now time.Time, random [16]byte) string {
	return fmt.Sprintf("%013d-%x", now.UnixMilli(), random)
}

// OperationTime is the time in an operation id, and whether it is one.
func OperationTime(id string) (time.Time, bool) {
	digits, random, ok := strings.Cut(id, "-")
	if !ok || len(digits) != 13 || len(random) != 32 || strings.Trim(digits, "0123456789") != "" || strings.Trim(random, "0123456789abcdef") != "" {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(digits, 10, 64)
	return time.UnixMilli(ms).UTC(), err == nil
}

// CheckOperation accepts an operation id that was not seen before (F4). mark is the newest time of which
// receipts were forgotten, zero if none was.
func CheckOperation(id string, now, mark time.Time) error {
	at, ok := OperationTime(id)
	switch {
	case !ok:
		return fmt.Errorf("%w: %q is not 13 digits of milliseconds, a hyphen and 32 lower case hex digits", ErrOperation, id)
	case at.Sub(now) > OperationAhead:
		return fmt.Errorf("%w: %s is %s ahead", ErrOperation, id, at.Sub(now))
	case now.Sub(at) > OperationAge:
		return fmt.Errorf("%w: %s is %s old", ErrOperationExpired, id, now.Sub(at))
	case !mark.IsZero() && !at.After(mark):
		return fmt.Errorf("%w: receipts up to %s were dropped", ErrOperationExpired, mark.Format(time.RFC3339Nano))
	}
	return nil
}
