package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// policy is what --approve means to codex.
type policy struct{ approval, sandbox, granted string }

// policies are by --approve; granted is what the server calls the sandbox in its answers. What is asked comes to us: codex can
// have an agent of its own answer in our place.
var policies = map[string]policy{
	"none":  {"untrusted", "read-only", "readOnly"},
	"reads": {"on-request", "read-only", "readOnly"},
	"edits": {"on-request", "workspace-write", "workspaceWrite"},
	"all":   {"never", "danger-full-access", "dangerFullAccess"},
}

// unasked: what it takes for safe it runs in any case; in a sandbox that can be written in it changes files unasked too.
func unasked(approve string) []string {
	kinds := []string{"read", "search", "think", "execute"}
	if p, ok := policies[approve]; ok && p.sandbox == "read-only" {
		return kinds
	}
	return append(kinds, "edit", "delete", "move", "fetch", "other")
}

func (p policy) stance() *stance {
	return &stance{Approval: encode(p.approval), Reviewer: "user", Sandbox: sandbox{Type: p.granted}, Stated: p.sandbox}
}

// thread is the answer to what opens one.
type thread struct {
	Thread struct {
		ID         ident
		CliVersion string
	}
	Model, Cwd              string
	ApprovalPolicy          json.RawMessage
	ApprovalsReviewer       string
	Sandbox                 sandbox
	ActivePermissionProfile struct{ ID string }
	RuntimeWorkspaceRoots   []string
}

// dir is where the thread works. Where the directory was given by way of an environment, cwd is the server's own.
func (t thread) dir(environment bool) string {
	if environment && len(t.RuntimeWorkspaceRoots) > 0 {
		return t.RuntimeWorkspaceRoots[0]
	}
	return t.Cwd
}

// sandbox is where tools may write, and whether they reach the network.
type sandbox struct {
	Type                string   `json:"type"`
	WritableRoots       []string `json:"writableRoots,omitempty"`
	NetworkAccess       bool     `json:"networkAccess,omitempty"`
	ExcludeTmpdirEnvVar bool     `json:"excludeTmpdirEnvVar,omitempty"`
	ExcludeSlashTmp     bool     `json:"excludeSlashTmp,omitempty"`
}

// stance is what a thread is to be opened with and must be found to have.
type stance struct {
	Approval json.RawMessage `json:"approval"` // a word, or an object of codex's
	Reviewer string          `json:"reviewer,omitempty"`
	Profile  string          `json:"profile,omitempty"` // of permissions, by name; then Stated is empty
	Stated   string          `json:"stated,omitempty"`  // the sandbox's name in requests
	Sandbox  sandbox         `json:"sandbox"`
	Exact    bool            `json:"exact,omitempty"` // Sandbox is all of it, not its type alone
	Roots    []string        `json:"roots,omitempty"`
}

// stance is the one of a thread that was opened by the agent's own configuration, but for what approve says.
func (t thread) stance(approve string) (*stance, error) {
	s := &stance{
		Approval: t.ApprovalPolicy, Reviewer: t.ApprovalsReviewer, Profile: t.ActivePermissionProfile.ID,
		Sandbox: t.Sandbox, Exact: true, Roots: t.RuntimeWorkspaceRoots,
	}
	if p, ok := policies[approve]; ok {
		s = p.stance()
		s.Roots = t.RuntimeWorkspaceRoots
	}
	if s.Profile == "" && s.Stated == "" {
		s.Stated = stated(t.Sandbox.Type)
	}
	switch {
	case len(t.Thread.ID) == 0 || len(s.Approval) == 0:
		return nil, errors.New("codex does not tell its own policy")
	case s.Profile == "" && s.Stated == "":
		return nil, fmt.Errorf("codex's own sandbox, %q, cannot be asked for: say --approve", t.Sandbox.Type)
	case len(encode(s)) > stanceLimit:
		return nil, errors.New("codex's own policy is too long")
	}
	return s, nil
}

// stanceLimit is how long a policy may be, in bytes.
const stanceLimit = 64 << 10

// stated is what requests call a sandbox.
func stated(granted string) string {
	for _, p := range policies {
		if p.granted == granted {
			return p.sandbox
		}
	}
	return ""
}

// state puts it into a request. What the request leaves out would be as in the run before.
func (s *stance) state(params map[string]any) {
	params["approvalPolicy"] = s.Approval
	if s.Reviewer != "" {
		params["approvalsReviewer"] = s.Reviewer
	}
	if len(s.Roots) > 0 {
		params["runtimeWorkspaceRoots"] = s.Roots
	}
	if s.Profile != "" {
		params["permissions"] = s.Profile
		return
	}
	params["sandbox"] = s.Stated
}

// missed is what a thread has otherwise, in words; "" if nothing.
func (s *stance) missed(t thread) string {
	switch {
	case s == nil:
		return ""
	case !equal(s.Approval, t.ApprovalPolicy), s.Sandbox.Type != t.Sandbox.Type, s.Profile != "" && s.Profile != t.ActivePermissionProfile.ID:
		return fmt.Sprintf("asked for %s with %s%s, got %s with %s", s.Approval, s.Stated, s.Profile, t.ApprovalPolicy, t.Sandbox.Type)
	case s.Reviewer != t.ApprovalsReviewer && (s.Exact || t.ApprovalsReviewer != ""): // a version may have none
		return fmt.Sprintf("asked for the reviewer %s, got %s", s.Reviewer, t.ApprovalsReviewer)
	case s.wider(t.Sandbox):
		return fmt.Sprintf("asked for the sandbox %s, got %s", encode(s.Sandbox), encode(t.Sandbox))
	}
	return ""
}

// wider says that a sandbox lets more through than was asked for. One that lets less through is no harm.
func (s *stance) wider(got sandbox) bool {
	allowed := slices.Concat(s.Sandbox.WritableRoots, s.Roots)
	known := s.Exact || len(s.Roots) > 0
	if known && slices.ContainsFunc(got.WritableRoots, func(root string) bool { return !slices.Contains(allowed, root) }) {
		return true
	}
	return s.Exact && (got.NetworkAccess && !s.Sandbox.NetworkAccess ||
		!got.ExcludeTmpdirEnvVar && s.Sandbox.ExcludeTmpdirEnvVar || !got.ExcludeSlashTmp && s.Sandbox.ExcludeSlashTmp)
}

// equal compares JSON.
func equal(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
