package environ

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestE4_StoredNamesOnly(t *testing.T) {
	p := Policy{
		Provider: []string{"OPENAI_*"}, Pass: []string{"EXTRA"}, Secrets: []string{"SHELL", "LC_HUSH"},
		Set: map[string]string{"TMPDIR": "/configured", "OTHER": "x"},
	}
	e := p.Compose(values(strings.Fields(`PATH HOME XDG_DATA_HOME LANG LC_ALL LC_HUSH TZ SHELL HTTP_PROXY https_proxy
		SSL_CERT_FILE OPENAI_API_KEY OPENAI_BASE_URL EXTRA LC_API_KEY`)))
	want := map[string]string{
		"PATH": "value-0", "HOME": "value-1", "XDG_DATA_HOME": "value-2", "LANG": "value-3", "LC_ALL": "value-4",
		"TZ": "value-6", "TMPDIR": "/configured",
	}
	if diff := cmp.Diff(want, e.Stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestE4_MissingNamesWhatALaterStartLacks(t *testing.T) {
	names := []string{"OPENAI_API_KEY", "PATH", "EMPTIED", "PINTLE_HOME"}
	host := []string{"PATH=/bin", "EMPTIED=", "UNASKED=x"}
	if diff := cmp.Diff([]string{"OPENAI_API_KEY", "EMPTIED"}, Missing(names, host)); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if missing := Missing([]string{"PATH"}, host); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
}

func TestE4_WhatWasConfiguredAsEmptyIsNotLacking(t *testing.T) {
	e := Policy{Set: map[string]string{"EMPTY": ""}}.Compose([]string{"PATH=/bin"})
	if diff := cmp.Diff([]string{"GONE"}, e.Lacks([]string{"EMPTY", "GONE", "PATH", "PINTLE_RUNTIME"})); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
}

func TestE4_AnAdopterGetsTheSameEnvironment(t *testing.T) {
	p := Policy{Secrets: []string{"PLAIN"}, Set: map[string]string{"EMPTY": "", "MULTI": "a=b\nc", "API_KEY": "k"}}
	e := p.Compose([]string{"PATH=/bin", "PLAIN=hush-hush"})
	if diff := cmp.Diff(e, Restore(e.List(), e.SecretNames())); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func TestE5_SecretsByOptionAndByName(t *testing.T) {
	p := Policy{
		Pass:         []string{"*"},
		Secrets:      []string{"PLAIN", "ABSENT"},
		SecretValues: map[string]string{"FILED": "from a file"},
	}
	e := p.Compose([]string{
		"PLAIN=named by option", "MY_KEY=by-key-0", "my_token=by-token", "A_SECRET_B=by-secret", "PGPASSWORD=by-password",
		"CREDENTIALS=by-credential", "SHORT_KEY=1234567", "UMLAUT_KEY=äöüäöüä", "HARMLESS=not a secret", "TWICE_KEY=by-key-0",
	})
	want := []string{"by-credential", "named by option", "by-password", "from a file", "by-secret", "by-token", "by-key-0"}
	got := e.SecretValues()
	if len(got) != len(want) {
		t.Fatalf("secrets: %q, want in some order %q", got, want)
	}
	for i, value := range got {
		if !strings.Contains(strings.Join(want, "|"), value) || i > 0 && len(got[i-1]) < len(value) {
			t.Errorf("secrets: %q, want %q, the longest first", got, want)
		}
	}
	names := strings.Fields("A_SECRET_B CREDENTIALS FILED MY_KEY PGPASSWORD PLAIN SHORT_KEY TWICE_KEY UMLAUT_KEY my_token")
	if diff := cmp.Diff(names, e.SecretNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestE5_FileWinsOverTheHost(t *testing.T) {
	p := Policy{Secrets: []string{"S"}, SecretValues: map[string]string{"S": "from a file"}}
	if e := p.Compose([]string{"S=from the host"}); e.Vars["S"] != "from a file" {
		t.Errorf("S=%q", e.Vars["S"])
	}
}

func TestPrintingAnEnvironmentHidesItsValues(t *testing.T) {
	e := Policy{Set: map[string]string{"A": "hush", "B": "hush"}}.Compose(nil)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(verb, e); strings.Contains(s, "hush") || !strings.Contains(s, "A B") {
			t.Errorf("%s prints %s", verb, s)
		}
	}
}

func TestEnvironmentTravelsAsJSON(t *testing.T) {
	e := Policy{Set: map[string]string{"API_KEY": "k", "A": "a"}}.Compose(nil)
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Environment
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Errorf("(-sent +got):\n%s", diff)
	}
}

func TestTheZeroEnvironmentIsUsable(t *testing.T) {
	var e Environment
	if got := e.With(map[string]string{"A": "a"}).List(); len(got) != 1 || len(e.List()) != 0 {
		t.Errorf("list: %v", got)
	}
}
