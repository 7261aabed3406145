package main

import (
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

func TestReadiness(t *testing.T) {
	for _, tt := range []struct {
		provider    api.Provider
		ready, note string
	}{
		{api.Provider{Name: "command", Enabled: true}, "yes", "runs what follows --"},
		{api.Provider{Name: "codex", Enabled: true}, "yes", ""},
		{api.Provider{Name: "codex", Enabled: true, Reason: "not signed in"}, "yes", "not signed in"},
		{api.Provider{Name: "codex", Reason: "not found"}, "no", "not found"},
	} {
		if ready, note := readiness(tt.provider); ready != tt.ready || note != tt.note {
			t.Errorf("%+v: %s, %q; want %s, %q", tt.provider, ready, note, tt.ready, tt.note)
		}
	}
}

func TestVersus(t *testing.T) {
	for version, want := range map[string]string{
		"0.171.0": "", "0.171.1": "newer", "0.172.0": "newer", "1.0": "newer", "0.1000.0": "newer", "0.171.0.1": "newer",
		"0.170.9": "older", "0.9.0": "older", "0.171": "older", "0.171.0-alpha.1": "other", "main": "other", "": "other",
	} {
		if got := versus(version, "0.171.0"); got != want {
			t.Errorf("%q is %q, want %q", version, got, want)
		}
	}
}
