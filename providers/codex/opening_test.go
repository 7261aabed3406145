package codex

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/providers"
)

const (
	greeting = `{"userAgent":"pintle/` + Tested + ` (Linux)"}`
	readOnly = `"approvalPolicy":"on-request","approvalsReviewer":"user","sandbox":{"type":"readOnly","networkAccess":false},"runtimeWorkspaceRoots":["/dir"]`
	full     = `"approvalPolicy":"never","approvalsReviewer":"user","sandbox":{"type":"dangerFullAccess"},"runtimeWorkspaceRoots":["/dir"]`
)

// resumes comes to where the thread T is to be resumed, by what the agent's own configuration gives.
func resumes(t *testing.T, approve, own string) *talk {
	t.Helper()
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Conversation: "T", Approve: approve})
	k.replies(greeting)
	k.replies(`{"config":{"mcp_servers":{"s":{"command":"x"}}}}`)
	probe := k.last()
	if got := string(encode(probe.Params)); probe.Method != "thread/start" || got != `{"config":{"mcp_servers":{"s":{"enabled":false}}},"cwd":"/dir","ephemeral":true}` {
		t.Errorf("%s %s", probe.Method, got)
	}
	k.replies(`{"thread":{"id":"P"},` + own + `}`)
	return k
}

// Permissions of an earlier run never carry over: what the agent's own configuration gives by now is stated.
func TestCase28_OwnPolicyIsStatedAnew(t *testing.T) {
	for name, test := range map[string]struct{ approve, own, stated string }{
		"sandbox": {"", readOnly, `"approvalPolicy":"on-request","approvalsReviewer":"user","runtimeWorkspaceRoots":["/dir"],"sandbox":"read-only"`},
		"profile": {
			"", readOnly + `,"activePermissionProfile":{"id":":read-only","extends":null}`,
			`"approvalPolicy":"on-request","approvalsReviewer":"user","permissions":":read-only","runtimeWorkspaceRoots":["/dir"]`,
		},
		"granular": {
			"", `"approvalPolicy":{"granular":{"rules":true}},"approvalsReviewer":"auto_review","sandbox":{"type":"workspaceWrite"}`,
			`"approvalPolicy":{"granular":{"rules":true}},"approvalsReviewer":"auto_review","sandbox":"workspace-write"`,
		},
		"asked for": {"all", strings.Replace(readOnly, `"user"`, `"auto_review"`, 1), `"approvalPolicy":"never","approvalsReviewer":"user","runtimeWorkspaceRoots":["/dir"],"sandbox":"danger-full-access"`},
	} {
		t.Run(name, func(t *testing.T) {
			k := resumes(t, test.approve, test.own)
			m := k.last()
			for _, key := range []string{"threadId", "excludeTurns", "cwd", "config"} {
				if m.Params[key] == nil {
					t.Errorf("no %s", key)
				}
				delete(m.Params, key)
			}
			if got := string(encode(m.Params)); m.Method != "thread/resume" || got != "{"+test.stated+"}" {
				t.Errorf("%s %s, want %s", m.Method, got, test.stated)
			}
		})
	}
}

func TestCase28_AMismatchEndsItBeforeThePrompt(t *testing.T) {
	const write = `"approvalPolicy":"on-request","approvalsReviewer":"user","runtimeWorkspaceRoots":["/dir"],"sandbox":{"type":"workspaceWrite"`
	for name, test := range map[string]struct{ approve, own, got string }{
		"policy":          {"", readOnly, full},
		"reviewer":        {"", readOnly, strings.Replace(readOnly, `"user"`, `"auto_review"`, 1)},
		"profile":         {"", readOnly + `,"activePermissionProfile":{"id":"mine"}`, readOnly},
		"root":            {"", write + `}`, write + `,"writableRoots":["/etc"]}`},
		"network":         {"", write + `}`, write + `,"networkAccess":true}`},
		"asked, root":     {"edits", readOnly, write + `,"writableRoots":["/etc"]}`},
		"asked, other":    {"reads", readOnly, full},
		"asked, reviewer": {"reads", readOnly, strings.Replace(readOnly, `"user"`, `"auto_review"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			k := resumes(t, test.approve, test.own)
			k.replies(`{"thread":{"id":"T"},` + test.got + `}`)
			k.wantEnd(session.Failed, "config", "codex did not take the policy")
			if a := k.About(); a.Prompt != "" || a.Ready {
				t.Errorf("%+v", a)
			}
		})
	}
	for name, test := range map[string]struct{ own, got string }{
		"equal":          {readOnly, readOnly},
		"fewer roots":    {write + `,"writableRoots":["/a","/b"]}`, write + `,"writableRoots":["/a"]}`},
		"without /tmp":   {write + `}`, write + `,"excludeSlashTmp":true}`},
		"without net":    {write + `,"networkAccess":true}`, write + `}`},
		"a stated root":  {write + `}`, write + `,"writableRoots":["/dir"]}`},
		"not understood": {write + `,"new":1}`, write + `,"new":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := resumes(t, "", test.own)
			k.replies(`{"thread":{"id":"T"},` + test.got + `}`)
			if a := k.About(); a.End != nil || a.Prompt == "" || !a.Ready {
				t.Errorf("%+v, ended as %+v", a, a.End)
			}
		})
	}
}

func TestOpening_ANewThreadIsChecked(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Approve: "edits"})
	k.replies(greeting)
	k.replies(`{"thread":{"id":"T"},` + readOnly + `}`)
	k.wantEnd(session.Failed, "config", "asked for \"on-request\" with workspace-write, got \"on-request\" with readOnly")
}

// A directory beside a sandbox that can be written in would be trusted from then on.
func TestCase28_NoTrustCarriesOver(t *testing.T) {
	for approve, stated := range map[string]bool{"": true, "none": true, "reads": true, "edits": false, "all": false} {
		k := newTalk(t)
		k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Approve: approve})
		k.replies(greeting)
		if m := k.last(); m.Method != "thread/start" || (m.Params["cwd"] == "/dir") != stated {
			t.Errorf("%q: %s %v", approve, m.Method, m.Params)
		}
	}
}

// A server that knows no config/read is asked all the same; one that does not tell its policy is not trusted.
func TestOpening_OwnPolicyThatIsNotTold(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir", Conversation: "T"})
	k.replies(greeting)
	k.refuses("Invalid request: unknown variant `config/read`")
	k.replies(`{"thread":{"id":"P"}}`)
	k.wantEnd(session.Failed, "config", "does not tell its own policy")

	k = resumes(t, "", `"approvalPolicy":"never","sandbox":{"type":"externalSandbox"}`)
	k.wantEnd(session.Failed, "config", "say --approve")
}

func TestOpening_Refused(t *testing.T) {
	for name, test := range map[string]struct{ message, code, want string }{
		"archived":        {"session T is archived. Run `codex unarchive T` to unarchive it first.", "config", "codex unarchive T"},
		"archived, terse": {"session T is archived", "config", "run codex unarchive T"},
		"busy":            {"thread T already has an active writer", "busy", "active writer"},
		"unloaded":        {"thread not found: T", "transport", "not found"},
		"anything":        {strings.Repeat("long ", 1000), "config", "long"},
	} {
		t.Run(name, func(t *testing.T) {
			k := resumes(t, "", readOnly)
			k.refuses(test.message)
			k.wantEnd(session.Failed, test.code, test.want)
			if n := len(k.About().End.Message); n > wordsLimit {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

func TestOpening_AnotherThreadThanAskedFor(t *testing.T) {
	k := resumes(t, "", readOnly)
	k.replies(`{"thread":{"id":"Z"},` + readOnly + `}`)
	k.wantEnd(session.Failed, "protocol", "the thread Z in place of T")
}

// A conversation that is gone gets one fresh one in its place, as a new one is opened.
func TestB1_LostConversationIsReplacedOnce(t *testing.T) {
	k := resumes(t, "all", readOnly)
	k.refuses("no rollout found for thread id T")
	k.wantTold("conversation_replaced", `{"was":"T","why":"no rollout found for thread id T"}`)
	if m := k.last(); m.Method != "thread/start" || m.Params["ephemeral"] != nil || m.Params["sandbox"] != "danger-full-access" {
		t.Errorf("%+v", m)
	}
	k.replies(`{"thread":{"id":"N"},` + full + `}`)
	k.runs("U")
	if a := k.About(); a.Conversation != "N" || !a.Confirmed {
		t.Errorf("%+v", a)
	}

	k = resumes(t, "all", readOnly)
	k.refuses("no rollout found for thread id T")
	k.refuses("no rollout found for thread id T")
	k.wantEnd(session.Failed, "config", "no rollout")
}

func TestOpening_ANewerVersionIsTold(t *testing.T) {
	for version, newer := range map[string]bool{
		Tested: false, "0.171.9": false, "0.170.0": false, "0.172.0": true, "1.0.0": true, "0.172.0-alpha.1": true, "": false, "x": false, "2": true,
	} {
		k := newTalk(t)
		k.begin(providers.Order{Turn: "t1", Cwd: "/dir"})
		k.replies(`{"userAgent":"pintle/` + version + ` (Linux)"}`)
		if told := k.told("agent_notice"); (len(told) == 1) != newer || k.About().Version != version {
			t.Errorf("%q: %q", version, told)
		}
	}
}

// A turn that failed before its thread stood leaves the next one to open it.
func TestOpening_Again(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	k.replies(greeting)
	k.refuses("failed to load configuration")
	k.wantEnd(session.Failed, "config", "")
	k.begin(providers.Order{Turn: "t2", Prompt: "y", Cwd: "/dir"})
	if m := k.last(); m.Method != "thread/start" {
		t.Errorf("%+v", m)
	}
}

func TestOpening_GoalsAreOff(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Prompt: "x", Cwd: "/dir"})
	k.replies(greeting)
	if got := string(encode(k.last().Params["config"])); got != `{"features":{"goals":false}}` {
		t.Error(got)
	}
	if got := string(encode(resumes(t, "", readOnly).last().Params["config"])); got != `{"features":{"goals":false}}` {
		t.Error(got)
	}
}

// Only the conversation is opened: no prompt is given, and nothing is confirmed. What is ordered next is its first turn.
func TestOpening_WithoutAPrompt(t *testing.T) {
	for name, conversation := range map[string]string{"new": "", "goes on": "T"} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir", Conversation: conversation})
			k.replies(greeting)
			if conversation != "" {
				k.replies(`{"config":{}}`)
				k.replies(`{"thread":{"id":"P"},` + readOnly + `}`)
			}
			k.replies(`{"thread":{"id":"T"},"model":"m",` + readOnly + `}`)
			k.wantEnd(session.Completed, "", "")
			want := providers.About{Conversation: "T", Model: "m", Version: Tested, Ready: true, End: &providers.End{Outcome: session.Completed}}
			if diff := cmp.Diff(want, k.About()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			k.begin(providers.Order{Turn: "t2", Prompt: "x", Cwd: "/dir"})
			if m := k.last(); m.Method != "turn/start" || m.Params["threadId"] != "T" {
				t.Errorf("%+v", m)
			}
			k.runs("U")
			k.ends("U", "completed")
			k.wantEnd(session.Completed, "", "")
		})
	}
}

// A conversation without a turn is kept nowhere once its process is gone (R1).
func TestR1_OpeningReplacesWhatWasNotKept(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir", Conversation: "T"})
	k.replies(greeting)
	k.replies(`{"config":{}}`)
	k.replies(`{"thread":{"id":"P"},` + readOnly + `}`)
	k.refuses("no rollout found for thread id T")
	k.wantTold("conversation_replaced", `{"was":"T","why":"no rollout found for thread id T"}`)
	k.replies(`{"thread":{"id":"N"}}`)
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); a.Conversation != "N" || a.Confirmed || a.Prompt != "" {
		t.Errorf("%+v", a)
	}
}

func TestR1_OpeningAnotherThreadIsAFailure(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir", Conversation: "T"})
	k.replies(greeting)
	k.replies(`{"config":{}}`)
	k.replies(`{"thread":{"id":"P"},` + readOnly + `}`)
	k.replies(`{"thread":{"id":"Z"},` + readOnly + `}`)
	k.wantEnd(session.Failed, "protocol", "the thread Z in place of T")
}

func TestOpening_InterruptedWithoutAPrompt(t *testing.T) {
	k := newTalk(t)
	k.begin(providers.Order{Turn: "t1", Open: true, Cwd: "/dir"})
	wantFrames(t, k.interrupts())
	k.replies(greeting)
	k.replies(`{"thread":{"id":"T"}}`)
	k.wantEnd(session.Cancelled, "cancelled", "interrupted")
}

// Where the conversation stands already, an opening has nothing to do.
func TestOpening_OfWhatIsOpen(t *testing.T) {
	k := newTalk(t)
	k.opens()
	k.runs("U")
	k.ends("U", "completed")
	before := len(k.frames)
	k.begin(providers.Order{Turn: "t2", Open: true, Cwd: "/dir"})
	k.wantEnd(session.Completed, "", "")
	if a := k.About(); len(k.frames) != before || a.Confirmed || a.Prompt != "" {
		t.Errorf("%+v, %s", a, joined(k.frames[before:]))
	}
}

func TestProvider_Writer(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/c/thread-writer-locks/T.lock":        {"CODEX_HOME": "/c", "HOME": "/h"},
		"/h/.codex/thread-writer-locks/T.lock": {"HOME": "/h"},
	} {
		if got := Provider().Writer(env, "T"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
