package environ

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestE1_ExactlyThreeOfFour(t *testing.T) {
	host := []string{"PATH=/bin", "HOME=/home/a", "CODEX_HOME=/home/a/.codex", "X_INTERNAL_SECRET=do-not-pass"}
	e := Policy{}.Compose(host)
	want := []string{"CODEX_HOME=/home/a/.codex", "HOME=/home/a", "PATH=/bin"}
	if diff := cmp.Diff(want, e.List()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	own := e.With(map[string]string{"PINTLE_HOME": "/s", "PINTLE_RUNTIME": "h.r"})
	want = append(want, "PINTLE_HOME=/s", "PINTLE_RUNTIME=h.r")
	if diff := cmp.Diff(want, own.List()); diff != "" {
		t.Errorf("environment with ours (-want +got):\n%s", diff)
	}
}

// The list is written out once more, from the acceptance text: whoever changes the one must mean it.
func TestE1_ThePublishedListIsAllThatIsInherited(t *testing.T) {
	published := strings.Fields(`PATH HOME USER LOGNAME SHELL TMPDIR TEMP TMP CODEX_HOME XDG_CONFIG_HOME XDG_CACHE_HOME
		XDG_DATA_HOME LANG LC_ALL LC_CTYPE TZ HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy
		SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS`)
	other := strings.Fields(`PWD OLDPWD TERM EDITOR SSH_AUTH_SOCK AWS_PROFILE GITHUB_TOKEN XDG_RUNTIME_DIR XDG_STATE_HOME
		LD_PRELOAD PATHEXT path ANTHROPIC_API_KEY LCX LANGUAGE`)
	e := Policy{}.Compose(values(slices.Concat(published, other)))
	if diff := cmp.Diff(slices.Sorted(slices.Values(published)), e.Names()); diff != "" {
		t.Errorf("inherited (-want +got):\n%s", diff)
	}
}

func TestE1_ProviderDeclaresItsOwn(t *testing.T) {
	p := Policy{Provider: []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_*"}}
	e := p.Compose(values([]string{"ANTHROPIC_API_KEY", "ANTHROPIC_OTHER", "CLAUDE_CODE_USE_BEDROCK", "OPENAI_API_KEY"}))
	want := []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"}
	if diff := cmp.Diff(want, e.Names()); diff != "" {
		t.Errorf("inherited (-want +got):\n%s", diff)
	}
}

func TestE2_ConfiguredValuesWinAndAreNotFiltered(t *testing.T) {
	p := Policy{Set: map[string]string{"PATH": "/configured", "LD_PRELOAD": "x.so", "EMPTY": ""}}
	e := p.Compose([]string{"PATH=/host", "LD_PRELOAD=host.so"})
	want := []string{"EMPTY=", "LD_PRELOAD=x.so", "PATH=/configured"}
	if diff := cmp.Diff(want, e.List()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestE2_EmptyHostValuesAreAbsent(t *testing.T) {
	p := Policy{Pass: []string{"A*"}, Secrets: []string{"B"}}
	e := p.Compose([]string{"PATH=", "A1=", "B=", "A2=x", "A3", "=x", ""})
	if diff := cmp.Diff([]string{"A2=x"}, e.List()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestE2_NamesAndGlobsTakeMoreFromTheCaller(t *testing.T) {
	p := Policy{Pass: []string{"EXACT", "AWS_*", "A[BC]D", "X?"}}
	e := p.Compose(values(strings.Fields("EXACT EXACTLY AWS_PROFILE AWS ABD AED X1 X12")))
	if diff := cmp.Diff(strings.Fields("ABD AWS_PROFILE EXACT X1"), e.Names()); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}

func TestE2_FirstOfTwoEntriesCounts(t *testing.T) {
	e := Policy{}.Compose([]string{"HOME=/first", "HOME=/second", "PATH=", "PATH=/late"})
	if diff := cmp.Diff([]string{"HOME=/first"}, e.List()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestE3_NestingIsRemovedWhoeverPassesIt(t *testing.T) {
	names := strings.Fields(`CLAUDECODE CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_SSE_PORT CODEX_SANDBOX
		CODEX_SANDBOX_NETWORK_DISABLED CODEX_THREAD_ID GEMINI_CLI OPENCODE OPENCODE_PID PI_CODING_AGENT
		CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR PINTLE_HOME PINTLE_SESSION PINTLE_ANYTHING`)
	p := Policy{Pass: append([]string{"*"}, names...), Provider: names, Secrets: names}
	if e := p.Compose(values(names)); len(e.Vars) > 0 {
		t.Errorf("passed: %v", e.Names())
	}
}

func TestE3_LookalikesPass(t *testing.T) {
	names := strings.Fields(`CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CONFIG_DIR CODEX_API_KEY GEMINI_API_KEY GEMINI_CLI_NO_RELAUNCH
		OPENCODE_CONFIG PI_CODING_AGENT_DIR PINTLED`)
	e := Policy{Pass: []string{"*"}}.Compose(values(names))
	if diff := cmp.Diff(slices.Sorted(slices.Values(names)), e.Names()); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
}

func TestE3_EveryPatternHasAReasonAndIsWellFormed(t *testing.T) {
	for _, n := range Nesting() {
		if n.Reason == "" || checkPattern(n.Pattern) != nil {
			t.Errorf("%+v: needs a reason and a pattern that path.Match understands", n)
		}
	}
}

func TestE3_OursCannotBeSetByOthers(t *testing.T) {
	forged := map[string]string{}
	for _, name := range Own() {
		forged[name] = "forged"
	}
	e := Policy{Set: forged, SecretValues: forged}.Compose(nil)
	if len(e.Vars) > 0 {
		t.Errorf("set: %v", e.Names())
	}
	e = Environment{Vars: forged}.With(map[string]string{"PINTLE_HOME": "/s"})
	if e.Vars["PINTLE_HOME"] != "/s" {
		t.Errorf("With set %q", e.Vars["PINTLE_HOME"])
	}
	if forged["PINTLE_HOME"] != "forged" {
		t.Error("With changed the environment that it was called on")
	}
}

func TestCase27_SecretsThatTheAgentDoesNotNeed(t *testing.T) {
	host := []string{"PATH=/bin", "GITHUB_TOKEN=ghp_0123456789", "OPENAI_API_KEY=sk-0123456789", "DB_PASSWORD=hunter2hunter2"}
	e := Policy{Provider: []string{"OPENAI_API_KEY"}}.Compose(host)
	if diff := cmp.Diff([]string{"OPENAI_API_KEY", "PATH"}, e.Names()); diff != "" {
		t.Errorf("passed (-want +got):\n%s", diff)
	}
	said := NewMasker(e.SecretValues()).Text("my key is sk-0123456789, bye")
	if want := "my key is [secret], bye"; said != want {
		t.Errorf("masked: %q, want %q", said, want)
	}
}

func TestCheckRefusesWhatNoEnvironmentHolds(t *testing.T) {
	for _, p := range []Policy{
		{Pass: []string{"A["}}, {Pass: []string{""}}, {Pass: []string{"A=B"}}, {Secrets: []string{""}},
		{Set: map[string]string{"": "x"}}, {Set: map[string]string{"A": "hush\x00hush"}},
		{SecretValues: map[string]string{"A=B": "hush"}},
	} {
		if err := p.Check(); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: error %v", p, err)
		}
	}
	ok := Policy{Pass: []string{"AWS_*"}, Set: map[string]string{"A": "b=c\nd"}, Secrets: []string{"S"}}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
}

// values gives each name a value of its own.
func values(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%s=value-%d", name, i)
	}
	return list
}

func TestPublishedIsACopy(t *testing.T) {
	clear(Published())
	clear(Own())
	clear(Nesting())
	if matches(Published(), "") || Own()[0] == "" || Nesting()[0].Pattern == "" {
		t.Error("a caller changed the list")
	}
}

func TestComposeLeavesThePolicyAlone(t *testing.T) {
	p := Policy{Secrets: []string{"S"}, Set: map[string]string{"A": "a"}, SecretValues: map[string]string{"T": "t"}}
	p.Compose([]string{"S=s"})
	if len(p.Secrets) != 1 || !maps.Equal(p.Set, map[string]string{"A": "a"}) {
		t.Errorf("policy changed: %+v", p)
	}
}
