package supervisor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// runsOf are the executions of the errand's session, each once: its runs as they came, and what else was sent to it.
func (s *Supervisor) runsOf(e record.Errand) []string {
	sess, err := state.Read[record.Session](s.dir, record.SessionFile(e.Session))
	runs := slices.Clone(sess.Runs)
	for _, folder := range s.sent(sess) {
		if !slices.Contains(runs, folder) {
			runs = append(runs, folder)
		}
	}
	if len(runs) == 0 && e.Session != "" && e.Folder == "" || err == nil && len(runs) == 0 {
		runs = s.scan(e.Session) // of before sessions knew theirs, or of one that is not there before its worktree is
	}
	if e.Folder != "" && !slices.Contains(runs, e.Folder) {
		runs = append(runs, e.Folder)
	}
	return slices.DeleteFunc(runs, func(folder string) bool { // its key may have been freed, and given again
		st, err := record.StatusOf(s.dir, folder)
		return err == nil && st.Session != e.Session || nowhere(err) && folder != e.Folder && !s.belongs(folder, e.Session)
	})
}

// sent are the messages and openings of a session.
func (s *Supervisor) sent(sess record.Session) (runs []string) {
	stored, err := journal.Scan(s.dir.Path(record.JournalDir(sess.ID)), time.Time{}, "message_stored")
	if err != nil {
		s.log.Printf("session %s: look for its messages: %v", sess.ID, err)
	}
	for _, e := range stored {
		runs = append(runs, record.FolderOf(e.Execution))
	}
	for _, t := range sess.Queue { // killed before it was told
		runs = append(runs, t.Folder)
	}
	for n := range sess.Openings {
		runs = append(runs, session.Folder(record.Chores, openingKey(sess.ID, n+1)))
	}
	slices.Sort(runs)
	return slices.Compact(runs)
}

// belongs reports whether an order that was not taken up is one of a session's.
func (s *Supervisor) belongs(folder, id string) bool {
	spec, err := record.SpecOf(s.dir, folder)
	return err == nil && (spec.Payload.Session == id || spec.Opening != nil && spec.Opening.Session == id)
}

func (s *Supervisor) scan(id string) (runs []string) {
	folders, _ := record.Folders(s.dir)
	for _, folder := range folders {
		if st, err := record.StatusOf(s.dir, folder); err == nil && st.Session == id {
			runs = append(runs, folder)
		}
	}
	return runs
}

// silenceRun stops an execution that has not ended, once a create of it would have been answered (X13).
func (s *Supervisor) silenceRun(ctx context.Context, folder string, e record.Errand) error {
	open, err := s.unended(folder)
	if err != nil || !open {
		return ignoreAbsent(err)
	}
	if err := s.answered(ctx, folder); err != nil {
		return err
	}
	reason := cmp.Or(e.Reason, "archived")
	if _, err := record.Cancel(ctx, s.dir, folder, api.Cancel{Action: "stop", Reason: reason, RequestedAt: time.Now().UTC()}); err != nil {
		return err
	}
	return s.ended(ctx, folder)
}

// names are the keys of executions.
func (s *Supervisor) names(runs []string) (ids []string) {
	for _, folder := range runs {
		if e, err := record.View(s.dir, folder); err == nil {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
