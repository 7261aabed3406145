package testscripts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// filed checks that an answer is what a control's is, and the report (X12).
func filed(t *testing.T, a answer) api.Report {
	t.Helper()
	var got map[string]json.RawMessage
	var done api.Archived
	if a.Error != nil || json.Unmarshal(a.Result, &got) != nil || json.Unmarshal(a.Result, &done) != nil {
		t.Fatalf("archive: %+v: %s", a.Error, a.Result)
	}
	if len(got) != 5 || done.ExecutionID != "k" || done.Action != "archive" || !done.Success || string(got["error"]) != "null" {
		t.Errorf("archive is answered with %s", a.Result)
	}
	return done.Report
}

// An archive that comes right behind a create waits for it: the create is answered first, with session, workspace and
// worktree; equal archives are done once and each is answered. In the end nothing of it is left (X13, X12).
func TestX13_ArchiveComesBehindThePendingCreate(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	repo := filepath.Join(t.TempDir(), "repo")
	commit(t, repo)
	socket := s.serving()
	s.orphan("--id", "k", "--worktree", "-C", repo, "-a", "command", "--", "sh", "-c", "exec sleep 600")
	w := dialWire(t, socket)
	w.say(hello(), request(1, api.MethodCreate, "k"), request(2, api.MethodArchive, "k"), request(3, api.MethodArchive, "k"))
	ids, answers := w.hear(4)
	if slices.Index(ids, "1") != 1 {
		t.Errorf("answers came as %v, want the create's before the archives'", ids)
	}
	e := answers["1"].execution(t)
	if e.ID != "k" || e.Session == "" || e.Workspace == "" || e.Worktree == "" {
		t.Errorf("the create is answered with %+v", e)
	}
	if one, other := filed(t, answers["2"]), filed(t, answers["3"]); !one.Removed || !other.Removed || one.Workspace != e.Workspace {
		t.Errorf("archived as %+v and %+v", one, other)
	}
	if _, err := os.Stat(e.Worktree); err == nil {
		t.Errorf("%s is there", e.Worktree)
	}
	if e := s.full("k"); e.Outcome != "cancelled" || e.Verdicts != 1 {
		t.Errorf("ended as %+v", e)
	}
	s.quiet()
}

// commit makes a repository with one commit.
func commit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "commit", "-q", "--allow-empty", "-m", "one"}} {
		c := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}
