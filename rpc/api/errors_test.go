package api

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestTableIsOneToOne(t *testing.T) {
	seen := map[int]Code{}
	for code, row := range table {
		if other, ok := seen[row.wire]; ok {
			t.Errorf("%s and %s share the number %d", code, other, row.wire)
		}
		seen[row.wire] = code
		if got := OfWire(code.Wire()); got != code {
			t.Errorf("OfWire(%d) = %s, want %s", code.Wire(), got, code)
		}
		if row.wire >= -32768 && row.wire <= -32000 && (row.wire > -32600 || row.wire < -32700) {
			t.Errorf("%s: %d is JSON-RPC's own", code, row.wire)
		}
	}
}

// The exit codes are promised to scripts (DESIGN 8).
func TestExitCodes(t *testing.T) {
	want := map[Code]int{
		CodeFailed: 1, CodeUsage: 2, CodeTimedOut: 3, CodeNotFound: 4, CodeDenied: 5, CodeConflict: 6, CodeExists: 6,
		CodeOwned: 7, CodeBusy: 7, CodeUnknown: 8, CodeBudget: 9, CodeNoAgent: 10, CodeCorrupt: 11, CodeFull: 11,
		CodeUnreachable: 12, CodeCancelled: 13, CodeDied: 14, CodeHostDied: 14, CodeWaiting: 15, CodeTimeout: 124,
		CodeInternal: 1, "no such code": 1,
	}
	for code, exit := range want {
		if got := code.Exit(); got != exit {
			t.Errorf("%s: exit %d, want %d", code, got, exit)
		}
	}
}

func TestCodeOf(t *testing.T) {
	inner := E(CodeFull, "write: %w", fs.ErrPermission)
	tests := []struct {
		name string
		err  error
		code Code
		exit int
	}{
		{"nil", nil, "", 0},
		{"plain", fs.ErrExist, CodeInternal, 1},
		{"typed", inner, CodeFull, 11},
		{"wrapped", fmt.Errorf("claim: %w", inner), CodeFull, 11},
		{"outermost counts", E(CodeBusy, "session: %w", inner), CodeBusy, 7},
		{"joined", errors.Join(fs.ErrExist, inner), CodeFull, 11},
	}
	for _, tt := range tests {
		if got := CodeOf(tt.err); got != tt.code {
			t.Errorf("%s: code %q, want %q", tt.name, got, tt.code)
		}
		if got := ExitOf(tt.err); got != tt.exit {
			t.Errorf("%s: exit %d, want %d", tt.name, got, tt.exit)
		}
	}
}

func TestErrorKeepsItsCauses(t *testing.T) {
	err := E(CodeFull, "write %s: %w: %w", "x", fs.ErrPermission, fs.ErrClosed)
	for _, cause := range []error{fs.ErrPermission, fs.ErrClosed, E(CodeFull, "any text")} {
		if !errors.Is(err, cause) {
			t.Errorf("errors.Is(%v, %v) = false", err, cause)
		}
	}
	if errors.Is(err, E(CodeBusy, "any text")) {
		t.Error("matches another code")
	}
}

func TestWithNextLeavesSentinelAlone(t *testing.T) {
	sentinel := E(CodeNotFound, "gone")
	if got := sentinel.WithNext("pintle ps -a"); got.Next != "pintle ps -a" || sentinel.Next != "" {
		t.Errorf("next %q, sentinel's %q", got.Next, sentinel.Next)
	}
}

func TestAsKeepsWhatOuterLayersSaid(t *testing.T) {
	e := As(fmt.Errorf("claim execution k: %w", E(CodeFull, "disk full").WithNext("pintle gc")))
	if e.Code != CodeFull || e.Message != "claim execution k: disk full" || e.Next != "pintle gc" {
		t.Errorf("%+v", e)
	}
}
