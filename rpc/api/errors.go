package api

import (
	"errors"
	"fmt"
)

// Code names a refusal or a failure, on the wire and with --json.
type Code string

// The codes.
const (
	CodeFailed      Code = "failed"
	CodeUsage       Code = "usage"
	CodeTimedOut    Code = "timed_out"
	CodeNotFound    Code = "not_found"
	CodeDenied      Code = "permission_denied"
	CodeConflict    Code = "execution_conflict"
	CodeExists      Code = "execution_exists"
	CodeOwned       Code = "session_owned"
	CodeBusy        Code = "session_busy"
	CodeUnknown     Code = "outcome_unknown"
	CodeBudget      Code = "budget"
	CodeNoAgent     Code = "agent_unavailable"
	CodeCorrupt     Code = "state_corrupt"
	CodeFull        Code = "state_full"
	CodeNotOurs     Code = "state_not_ours"
	CodeNewer       Code = "state_newer"
	CodeUnreachable Code = "supervisor_unreachable"
	CodeCancelled   Code = "cancelled"
	CodeDied        Code = "agent_died"
	CodeWaiting     Code = "waiting"
	CodeTimeout     Code = "timeout" // the verb's own --timeout
	CodeStopping    Code = "stopping"
	CodeInternal    Code = "internal"
	CodeParse       Code = "parse_error"
	CodeRequest     Code = "invalid_request"
	CodeNoMethod    Code = "method_not_found"
	CodeParams      Code = "invalid_params"
	CodeHello       Code = "hello_expected"
	CodeAmbiguous   Code = "ambiguous"
)

// table is the one table: code ↔ JSON-RPC's number ↔ exit code (docs: README, "Exit codes").
var table = map[Code]struct{ wire, exit int }{
	CodeParse:       {-32700, 2},
	CodeRequest:     {-32600, 2},
	CodeNoMethod:    {-32601, 2},
	CodeParams:      {-32602, 2},
	CodeInternal:    {-32603, 1},
	CodeFailed:      {4100, 1},
	CodeUsage:       {4101, 2},
	CodeTimedOut:    {4102, 3},
	CodeNotFound:    {4103, 4},
	CodeAmbiguous:   {4104, 4},
	CodeDenied:      {4105, 5},
	CodeConflict:    {4106, 6},
	CodeExists:      {4107, 6},
	CodeOwned:       {4108, 7},
	CodeBusy:        {4109, 7},
	CodeUnknown:     {4110, 8},
	CodeBudget:      {4111, 9},
	CodeNoAgent:     {4112, 10},
	CodeCorrupt:     {4113, 11},
	CodeFull:        {4114, 11},
	CodeNotOurs:     {4115, 11},
	CodeNewer:       {4116, 11},
	CodeUnreachable: {4117, 12},
	CodeStopping:    {4118, 12},
	CodeCancelled:   {4119, 13},
	CodeDied:        {4120, 14},
	CodeWaiting:     {4121, 15},
	CodeTimeout:     {4122, 124},
	CodeHello:       {4002, 2},
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

// Error is a refusal or failure with what the user needs: what, which, why, and what to do next.
type Error struct {
	Code      Code
	Message   string
	Retryable bool
	Next      string   // a command
	Fields    []string // that differ, for a conflict
	cause     error
}

// E makes an Error; %w keeps its cause.
func E(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), cause: errors.Unwrap(err)}
}

// WithNext returns e with the command that helps.
func (e *Error) WithNext(next string) *Error {
	e.Next = next
	return e
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

// Is matches another Error by its code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// As returns err as an Error; one without a code is CodeInternal.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: err.Error(), cause: err}
}
