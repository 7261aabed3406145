package claude

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/providertest"
)

// spoken are what the real Claude Code has said, by name (testscripts/agents records it).
func spoken(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".jsonl")] = data
	}
	return all
}

func TestProvider(t *testing.T) { providertest.Run(t, Provider(), spoken(t)) }

// The first turn of a transcript ends so for one who is told nothing of what is allowed.
func TestProvider_EndsAsRecorded(t *testing.T) {
	for _, test := range []struct {
		name    string
		turn    int
		outcome session.Outcome
		code    string
		text    string
	}{
		{"turns", 1, session.Completed, "", "tool said: made"},
		{"resumed", 3, session.Completed, "", "three"},
		{"gone", 1, session.Failed, "config", ""},
		{"steered", 1, session.Completed, "", "steered"},
		{"own_turn", 1, session.Completed, "", "tool said: "},
		{"error_unauthorized", 1, session.Failed, "auth", ""},
		{"error_limited", 1, session.Failed, "capacity", ""},
		{"error_overloaded", 1, session.Failed, "capacity", ""},
		{"error_broken", 1, session.Failed, "transient", ""},
		{"error_bad_request", 1, session.Failed, "", ""},
		{"error_no_model", 1, session.Failed, "config", ""},
		{"error_too_long", 1, session.Failed, "config", ""},
		{"error_dropped", 1, session.Failed, "transient", ""},
		{"error_refusal", 1, session.Failed, "", ""},
		{"budget", 1, session.Budget, "budget", ""},
		{"not_signed_in", 1, session.Failed, "auth", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			k.begin(order(test.turn, ""))
			for line := range strings.Lines(string(spoken(t)[test.name])) {
				if k.say(strings.TrimSuffix(line, "\n")); k.About().End != nil {
					break
				}
			}
			k.wantEnd(test.outcome, test.code, "")
			if got := k.text(k.About().Message); !strings.Contains(got, test.text) {
				t.Errorf("the answer is %q", got)
			}
		})
	}
}

func TestLaunch(t *testing.T) {
	ours := conversation(providers.Order{Turn: "t", Process: "p"})
	for _, test := range []struct {
		order providers.Order
		want  []string
	}{
		{providers.Order{Turn: "t", Process: "p"}, []string{"--session-id", ours}},
		{providers.Order{Turn: "t", Conversation: "C"}, []string{"--resume", "C"}},
		{providers.Order{Turn: "t", Conversation: "C", Lost: true}, []string{"--session-id", "C"}},
		{providers.Order{Conversation: "C", Model: "m"}, []string{"--resume", "C", "--model", "m"}},
		{providers.Order{Conversation: "C", Approve: "all"}, []string{"--resume", "C", "--permission-mode", "default"}},
		{providers.Order{Conversation: "C", Mode: "plan"}, []string{"--resume", "C", "--permission-mode", "plan"}},
		{providers.Order{Conversation: "C", Policy: true}, []string{"--resume", "C", "--permission-mode", "default", "--settings", askRules}},
	} {
		l := launch(test.order, []string{"--more"}, "")
		got := l.Args[slices.Index(l.Args, "stdio")+1:]
		if diff := cmp.Diff(append(test.want, "--more"), got); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", test.order, diff)
		}
	}
}

// No two processes name a new conversation alike, whatever its turn is called.
func TestConversation_IsOfTheProcess(t *testing.T) {
	a := conversation(providers.Order{Turn: "t", Process: "p"})
	if b := conversation(providers.Order{Turn: "t", Process: "q"}); a == b || len(a) != 36 || a[14] != '4' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s, %s", a, b)
	}
}

func TestKept(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/h"}, "/h/.claude/projects/*/C.jsonl"},
		{map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/projects/*/C.jsonl"},
		{map[string]string{"HOME": "/h[1]*"}, `/h\[1]\*/.claude/projects/*/C.jsonl`},
	} {
		if got := kept(test.env, "C"); len(got) != 1 || got[0] != test.want {
			t.Errorf("%v: %q", test.env, got)
		}
	}
}

func TestSigned(t *testing.T) {
	for _, test := range []struct {
		output string
		in     bool
		how    string
		ok     bool
	}{
		{`{"loggedIn":false,"authMethod":"none","apiProvider":"firstParty"}`, false, "", true},
		{`{"loggedIn":true,"authMethod":"api_key","apiProvider":"firstParty","apiKeySource":"ANTHROPIC_API_KEY"}`, true, "ANTHROPIC_API_KEY", true},
		{`{"loggedIn":true,"authMethod":"api_key_helper","apiKeySource":"apiKeyHelper"}`, true, "apiKeyHelper", true},
		{`{"loggedIn":true,"authMethod":"oauth_token"}`, true, "oauth_token", true},
		{`{"loggedIn":true,"authMethod":"claude.ai","subscriptionType":"pro"}`, true, "claude.ai pro", true},
		{`{"loggedIn":true,"authMethod":"third_party","apiProvider":"bedrock"}`, true, "bedrock", true},
		{`error: unknown command`, false, "", false},
		{`{}`, false, "", false},
	} {
		if in, how, ok := Signed([]byte(test.output)); in != test.in || how != test.how || ok != test.ok {
			t.Errorf("%s: %v, %q, %v", test.output, in, how, ok)
		}
	}
}
