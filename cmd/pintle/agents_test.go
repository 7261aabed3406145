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
		{api.Provider{Name: "codex", Reason: "not signed in"}, "no", "not signed in"},
	} {
		if ready, note := readiness(tt.provider); ready != tt.ready || note != tt.note {
			t.Errorf("%+v: %s, %q; want %s, %q", tt.provider, ready, note, tt.ready, tt.note)
		}
	}
}
