package pi

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

// spoken are what the real pi has said, by name (testscripts/agents records it).
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
		{"steered", 1, session.Completed, "", "steered"},
		{"own_run", 1, session.Completed, "", "one"},
		{"asked_command_deny", 1, session.Completed, "", "tool said: This was not allowed"},
		{"interrupted", 1, session.Cancelled, "cancelled", "w1"},
		{"interrupted_retry", 1, session.Cancelled, "cancelled", ""},
		{"retried", 1, session.Completed, "", "recovered"},
		{"no_model", 1, session.Failed, "config", ""},
		{"error_unauthorized", 1, session.Failed, "auth", ""},
		{"error_limited", 1, session.Failed, "capacity", ""},
		{"error_broken", 1, session.Failed, "transient", ""},
		{"error_bad_request", 1, session.Failed, "", ""},
		{"error_no_model", 1, session.Failed, "config", ""},
		{"error_too_long", 1, session.Failed, "config", ""},
		{"error_dropped", 1, session.Failed, "transient", ""},
		{"error_length", 1, session.Failed, "", ""},
		{"error_filtered", 1, session.Failed, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			o := order(test.turn, "")
			if test.turn > 1 { // it goes on with the conversation of the first
				o.Conversation = conversation(order(1, ""))
			}
			k.begin(o)
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
		{providers.Order{Conversation: "C"}, []string{"--session-id", "C"}},
		{providers.Order{Conversation: "C", Lost: true, Model: "m"}, []string{"--session-id", "C", "--model", "m"}},
		{providers.Order{Conversation: "C", Approve: "all"}, []string{"--session-id", "C"}},
		{providers.Order{Conversation: "C", Approve: "edits"}, []string{"--session-id", "C", "--extension", "/at/gate.ts"}},
		{providers.Order{Conversation: "C", Approve: "all", Policy: true}, []string{"--session-id", "C", "--extension", "/at/gate.ts"}},
	} {
		l := launch(test.order, []string{"--more"}, "/at")
		if diff := cmp.Diff(append(append([]string{"pi", "--mode", "rpc"}, test.want...), "--more"), l.Args); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", test.order, diff)
		}
		if (l.Files[gateFile] != "") != gated(test.order) {
			t.Errorf("%+v: %q", test.order, l.Files)
		}
	}
}

// No two processes name a new conversation alike, whatever its turn is called.
func TestConversation_IsOfTheProcess(t *testing.T) {
	a := conversation(providers.Order{Turn: "t", Process: "p"})
	if b := conversation(providers.Order{Turn: "t", Process: "q"}); a == b || len(a) != 36 {
		t.Errorf("%s, %s", a, b)
	}
}

// In those it looks for a key, however its home is called.
func TestCredentials(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"HOME": "/h"}, "/h/.pi/agent"},
		{map[string]string{"HOME": "/h", "PI_CODING_AGENT_DIR": "/c"}, "/c"},
		{map[string]string{"HOME": "/h", "PI_CODING_AGENT_DIR": "~/c"}, "/h/c"},
		{map[string]string{"HOME": "/h", "PI_CODING_AGENT_DIR": "~c"}, "~c"},
		{map[string]string{"HOME": "/h[1]*"}, `/h\[1]\*/.pi/agent`},
	} {
		if got := credentials(test.env); !slices.Equal(got, []string{test.want + "/auth.json", test.want + "/models.json"}) {
			t.Errorf("%v: %q", test.env, got)
		}
	}
}

func TestManifest(t *testing.T) {
	for program, want := range map[string]string{
		"/lib/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js": "/lib/node_modules/@earendil-works/pi-coding-agent/package.json",
		"/usr/bin/node":       "",
		"/dist/bundle/cli.js": "",
	} {
		if got := manifest(program); got != want {
			t.Errorf("%s: %q", program, got)
		}
	}
}
