package api

import (
	"errors"
	"fmt"
)

// Code names a refusal or a failure, on the wire and with --json.
type Code string

// The codes. Those of one request come first, those of JSON-RPC itself last.
const (
	CodeFailed            Code = "failed"
	CodeUsage             Code = "usage"
	CodeTimedOut          Code = "timed_out"
	CodeNotFound          Code = "not_found"
	CodeAmbiguous         Code = "ambiguous"
	CodeDenied            Code = "permission_denied"
	CodeAccess            Code = "access_denied" // a grant does not reach so far
	CodeConflict          Code = "execution_conflict"
	CodeExists            Code = "execution_exists"
	CodeOwned             Code = "session_owned"
	CodeBusy              Code = "session_busy"
	CodeStaleFence        Code = "stale_fence"
	CodeOperationConflict Code = "operation_conflict"
	CodeOperationInvalid  Code = "operation_invalid"
	CodeOperationExpired  Code = "operation_expired"
	CodeResolved          Code = "already_resolved"
	CodeOptions           Code = "provider_options_invalid"
	CodePolicy            Code = "policy_unsupported"
	CodeUnknown           Code = "outcome_unknown"
	CodeBudget            Code = "budget"
	CodeNoAgent           Code = "agent_unavailable"
	CodeCorrupt           Code = "state_corrupt"
	CodeFull              Code = "state_full"
	CodeNotOurs           Code = "state_not_ours"
	CodeNewer             Code = "state_newer"
	CodeUnreachable       Code = "supervisor_unreachable"
	CodeStopping          Code = "stopping"
	CodeCancelled         Code = "cancelled" // the run was
	CodeDied              Code = "agent_died"
	CodeHostDied          Code = "host_died"
	CodeWaiting           Code = "waiting"
	CodeTimeout           Code = "timeout"     // the verb's own --timeout
	CodeClientGone        Code = "client_gone" // said goodbye with requests pending
	CodeHello             Code = "hello_expected"
	CodeAbandoned         Code = "request_cancelled" // the asker cancelled the request
	CodeUntrusted         Code = "untrusted"         // a repository's .pintle.toml
	CodeArchived          Code = "archived"
	CodeDirty             Code = "workspace_dirty"
	CodeOccupied          Code = "workspace_busy"
	CodeLocked            Code = "worktree_locked"
	CodeSteer             Code = "steer_refused" // no turn runs that the message could be put into, or the agent cannot
	CodeCrashLooping      Code = "crash_looping" // the session's agent died again and again, or once and must not be restarted
	CodeInternal          Code = "internal"
	CodeParse             Code = "parse_error"
	CodeRequest           Code = "invalid_request"
	CodeNoMethod          Code = "method_not_found"
	CodeParams            Code = "invalid_params"
)

// table is the one table: code ↔ JSON-RPC's number ↔ exit code (docs: README, "Exit codes"). JSON-RPC
// keeps -32768 to -32000 for itself; -32800 is what editors know for a cancelled request.
var table = map[Code]struct{ wire, exit int }{
	CodeParse:             {-32700, 2},
	CodeRequest:           {-32600, 2},
	CodeNoMethod:          {-32601, 2},
	CodeParams:            {-32602, 2},
	CodeInternal:          {-32603, 1},
	CodeAbandoned:         {-32800, 1},
	CodeHello:             {4002, 2},
	CodeFailed:            {4100, 1},
	CodeUsage:             {4101, 2},
	CodeTimedOut:          {4102, 3},
	CodeNotFound:          {4103, 4},
	CodeAmbiguous:         {4104, 4},
	CodeDenied:            {4105, 5},
	CodeConflict:          {4106, 6},
	CodeExists:            {4107, 6},
	CodeOwned:             {4108, 7},
	CodeBusy:              {4109, 7},
	CodeUnknown:           {4110, 8},
	CodeBudget:            {4111, 9},
	CodeNoAgent:           {4112, 10},
	CodeCorrupt:           {4113, 11},
	CodeFull:              {4114, 11},
	CodeNotOurs:           {4115, 11},
	CodeNewer:             {4116, 11},
	CodeUnreachable:       {4117, 12},
	CodeStopping:          {4118, 12},
	CodeCancelled:         {4119, 13},
	CodeDied:              {4120, 14},
	CodeWaiting:           {4121, 15},
	CodeTimeout:           {4122, 124},
	CodeHostDied:          {4123, 14},
	CodeAccess:            {4124, 5},
	CodeStaleFence:        {4125, 7},
	CodeOperationConflict: {4126, 6},
	CodeOperationInvalid:  {4127, 2},
	CodeOperationExpired:  {4128, 8}, // its receipt may be gone: whether it was done is not known
	CodeResolved:          {4129, 6},
	CodeOptions:           {4130, 2},
	CodePolicy:            {4131, 2},
	CodeClientGone:        {4132, 12},
	CodeUntrusted:         {4133, 5},
	CodeArchived:          {4134, 6},
	CodeDirty:             {4135, 6},
	CodeOccupied:          {4136, 7},
	CodeLocked:            {4137, 7},
	CodeSteer:             {4138, 7},
	CodeCrashLooping:      {4139, 14},
}

// Wire is the JSON-RPC number of the code.
func (c Code) Wire() int {
	if row, ok := table[c]; ok {
		return row.wire
	}
	return table[CodeInternal].wire
}

// Exit is the exit code of a verb that ends with this code.
func (c Code) Exit() int {
	if row, ok := table[c]; ok {
		return row.exit
	}
	return table[CodeInternal].exit
}

// OfWire is the code of a JSON-RPC number, for an answer that names none; CodeInternal if none has it.
func OfWire(number int) Code {
	for code, row := range table {
		if row.wire == number {
			return code
		}
	}
	return CodeInternal
}

// Error is a refusal or failure with what the user needs: what, which, why, and what to do next.
type Error struct {
	Code      Code
	Message   string
	Retryable bool
	Next      string         // a command
	Fields    []string       // that differ, for a conflict
	Data      map[string]any // more members of the refusal's data: currentFence, owner, …
	cause     error
}

// E makes an Error. Causes named with %w, one or several, are kept for errors.Is and errors.As.
func E(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: err}
}

// WithNext returns a copy of e with the command that helps: e may be a sentinel.
func (e *Error) WithNext(next string) *Error {
	c := *e
	c.Next = next
	return &c
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Is matches another Error by its code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// As returns err as an Error; one without a code is CodeInternal. Wrapping adds to the message: what the
// outer layers said of an Error inside is kept.
func As(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Code: CodeInternal, Message: err.Error(), cause: err}
	}
	if err == error(e) { //nolint:errorlint // the very same value is meant
		return e
	}
	c := *e
	c.Message, c.cause = err.Error(), err
	return &c
}

// CodeOf is the code of the outermost Error that err wraps: "" of nil, CodeInternal if there is none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return As(err).Code
}

// ExitOf is the exit code of a verb that ends with err; 0 of nil.
func ExitOf(err error) int {
	if err == nil {
		return 0
	}
	return CodeOf(err).Exit()
}
