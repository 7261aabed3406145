package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/policy"
)

func TestPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.toml")
	const text = "# what it may do\n[[allow]]\ncommand = \"git status\"\n\n[[deny]]\npath = \"**/.env\"\nreason = \"keys\"\n[[allow]]\nkind = \"edit\"\npath = \"src/**\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Policy(file)
	want := policy.Policy{Rules: []policy.Rule{
		{Command: "git status", From: "rules.toml:2"}, {Kind: "edit", Path: "src/**", From: "rules.toml:8"},
		{Deny: true, Path: "**/.env", Reason: "keys", From: "rules.toml:5"},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestPolicy_SaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"[[allow]]\n":                               "p:1: allow: a rule needs one of",
		"\n[[deny]]\nkind = \"write\"":              "p:2: deny: the kind \"write\" is none of read",
		"[[deny]]\ncomand = \"x\"":                  "p: deny.comand: unknown key",
		"[[allow]]\ncommand = \"  \"":               "the command is blank",
		"[[allow]]\ncommand = \"a\\nb\"":            "the first words of one line",
		"[[allow]]\ntool = \"[\"":                   "is no pattern",
		"[[allow]]\ntool = \"a\"\nreason = \"why\"": "a reason is for who is refused",
		"allow = 3":                                 "p:1",
		"[[allow]\n":                                "p:2",
		"default = \"deny\"":                        "unknown key",
	} {
		if _, err := decodePolicy("p", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
