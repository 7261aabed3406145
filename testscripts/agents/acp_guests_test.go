//go:build agents

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// codex-acp warns with each turn of a model that it knows nothing of. That is no error.
func TestACP_WarningIsNoError(t *testing.T) {
	t.Parallel()
	h := codexACP.house(t)
	file := filepath.Join(h.lab.home, ".codex", "config.toml")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(data), "gpt-5.5", "never-heard-of")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r := h.pintle("", "run", "--id", "k", "-a", h.agent, "respond with exactly: hello"); r.Code != 0 || r.Out != "hello\n" {
		t.Errorf("%+v", r)
	}
	if r := h.pintle("", "logs", "--json", "k"); !strings.Contains(r.Out, "Model metadata for `never-heard-of` not found") {
		t.Errorf("it did not warn: %.2000s", r.Out)
	}
}

// Each turn has a price of its own, in whichever process it was: the agents tell that of the whole conversation.
func TestACP_PriceOfATurn(t *testing.T) {
	for _, g := range []guest{claudeACP, openCode} {
		t.Run(g.agent, func(t *testing.T) {
			t.Parallel()
			h := g.house(t)
			if r := h.pintle("", "run", "--id", "k", "-a", h.agent, "respond with exactly: one"); r.Code != 0 {
				t.Fatalf("%+v", r)
			}
			if r := h.pintle("", "send", "--id", "next", "k", "respond with exactly: two"); r.Code != 0 {
				t.Fatalf("%+v", r)
			}
			first, next := h.price(t, "k"), h.price(t, "next")
			if first <= 0 || next <= 0 || next > 1.5*first {
				t.Errorf("the first cost %v, and one like it %v", first, next)
			}
		})
	}
}

// price is what a run has cost.
func (h *house) price(t *testing.T, id string) float64 {
	t.Helper()
	e := h.show(id)
	if e.Usage == nil || e.Usage.USD == nil {
		t.Fatalf("%s: no price is told: %+v", id, e.Usage)
	}
	return *e.Usage.USD
}
