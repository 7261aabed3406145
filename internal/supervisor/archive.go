package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// archiveRun archives the session of an execution, with its workspace (X16). It answers once that is done; what is being
// created has its ids by then (X13).
func (s *Supervisor) archiveRun(ctx context.Context, c api.Archive) (any, error) {
	folder, err := record.Find(s.dir, c.ID)
	if err != nil {
		return nil, err
	}
	e, err := s.lodging(ctx, folder)
	if err != nil {
		return nil, err
	}
	answer := api.Archived{Controlled: api.Controlled{ExecutionID: c.ID, Action: "archive", Success: true}}
	if e.ResultExpired {
		answer.Report.ArchivedAt = e.ArchivedAt
		return answer, nil
	}
	report, err := s.send(ctx, record.Errand{
		Workspace: e.Workspace, Session: e.Session, Action: "archive", Folder: record.Hash(folder), Refuse: c.RefuseDirty, Reason: c.Reason,
		At: time.Now().UTC(),
	})
	if err != nil {
		return nil, err
	}
	answer.Report = report.(api.Report)
	return answer, nil
}

// lodging is the execution once it has its session and its workspace, or has ended without.
func (s *Supervisor) lodging(ctx context.Context, folder string) (api.Execution, error) {
	open, err := s.unended(folder)
	if err != nil {
		return api.Execution{}, err
	}
	if open {
		if err := s.answered(ctx, folder); err != nil {
			return api.Execution{}, err
		}
	}
	e, err := record.View(s.dir, folder)
	if err == nil && e.Workspace == "" && !e.ResultExpired {
		err = api.E(api.CodeBusy, "%s has not been taken up", e.ID).WithNext("pintle wait " + record.Quote(e.ID))
	}
	return e, err
}

// answered returns when a create of the execution is to be answered: it has its ids, and its worktree if it ordered one, or
// waits for somebody, or has ended.
func (s *Supervisor) answered(ctx context.Context, folder string) error {
	r := s.ensure(folder)
	waits := r.waits()
	if r.isWaiting() {
		return nil // it came to wait before we looked
	}
	select {
	case <-r.claimed:
	case <-r.done:
	case <-waits:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// archive archives a workspace, and the session whose it is. Each step may be repeated; which are done is on record:
//
//	the errand                      pending/<workspace>.json
//	nothing comes into the session  session.json: archivedAt
//	nothing of it runs              the ends of its executions
//	its worktree goes               leave.go
//	it is told                      `archived` in the journal
//	it is seen                      archivedAt of executions and workspace
//	ps does not see it any more     the executions' folders, in archived/
func (s *Supervisor) archive(ctx context.Context, e record.Errand) (api.Report, error) {
	w, err := s.workspaceOf(e)
	if err != nil {
		return api.Report{}, err
	}
	was, pending, err := s.errandOf(w.ID)
	switch {
	case err != nil:
		return api.Report{}, err
	case w.ArchivedAt != nil:
		return s.again(ctx, w)
	case pending && was.Action == e.Action:
		e = was // it goes on as it was begun
	}
	if e.Action == "remove" { // it was brought back since
		return api.Report{Workspace: w.ID}, s.endErrand(w.ID)
	}
	if e.Refuse {
		if err := s.refuseDirty(ctx, w); err != nil {
			return api.Report{}, err
		}
	}
	if err := s.beginErrand(e); err != nil {
		return api.Report{}, err
	}
	runs, err := s.silence(ctx, e)
	if err != nil {
		return api.Report{}, err
	}
	if w, err = s.workspaceOf(e); err != nil { // what was stopped may have made its worktree since, or taken it back
		return api.Report{}, err
	}
	if e.Refuse { // what ran until now may have left something
		if err := s.refuseDirty(ctx, w); err != nil {
			return api.Report{}, errors.Join(err, s.closeSession(e.Session, nil), s.endErrand(w.ID))
		}
	}
	report, err := s.vacate(ctx, w)
	if err != nil {
		return api.Report{}, err
	}
	report.ArchivedAt, report.Executions = &e.At, s.names(runs)
	return report, s.shelve(e, w, runs, report)
}

// again answers a repeat, and tries once more to remove a directory that could not be removed.
func (s *Supervisor) again(ctx context.Context, w record.Workspace) (api.Report, error) {
	report := api.Report{Workspace: w.ID, ArchivedAt: w.ArchivedAt}
	if w.Report != nil {
		report = *w.Report
	}
	pending, is, err := s.errandOf(w.ID)
	if err != nil || !is {
		return report, err
	}
	if pending.Action == "archive" { // it was seen to be archived, and its executions may not all be in archived/
		return report, s.shelve(pending, w, s.runsOf(pending), report)
	}
	left, err := s.vacate(ctx, w)
	if err != nil {
		return report, err
	}
	left.ArchivedAt, left.Executions, left.Cleanup = report.ArchivedAt, report.Executions, cmp.Or(left.Cleanup, report.Cleanup)
	if err := s.noteReport(w, left); err != nil || left.Pending == nil {
		return left, errors.Join(err, s.endErrand(w.ID))
	}
	pending.Stuck = left.Pending
	return left, s.beginErrand(pending)
}

// workspaceOf reads the errand's workspace. Of an execution that ended before it began none is on record, and one that was
// stopped in its set-up has taken it back.
func (s *Supervisor) workspaceOf(e record.Errand) (record.Workspace, error) {
	w, err := state.Read[record.Workspace](s.dir, record.WorkspaceFile(e.Workspace))
	if !nowhere(err) {
		return w, err
	}
	if _, begun, pendingErr := s.errandOf(e.Workspace); e.Folder == "" && begun {
		return record.Workspace{Version: record.Version, ID: e.Workspace, Cwd: e.Cwd, Session: e.Session, CreatedAt: e.At}, pendingErr
	}
	if e.Folder == "" {
		return w, err
	}
	st, err := record.StatusOf(s.dir, e.Folder)
	if err != nil {
		return w, err
	}
	w = record.Workspace{Version: record.Version, ID: e.Workspace, Cwd: st.Cwd, Session: e.Session, CreatedAt: st.CreatedAt}
	for _, t := range Worktrees(s.dir) {
		if slices.Contains(t.Workspaces, w.ID) { // a death came between that and its own record
			w.Worktree, w.Root = t.ID, t.Dir
		}
	}
	return w, s.dir.Mkdir("workspaces")
}

// silence has nothing of the session run any more, nor begin: it is closed, and then what is in it is stopped.
func (s *Supervisor) silence(ctx context.Context, e record.Errand) (runs []string, err error) {
	if err := s.closeAtDesk(ctx, e); err != nil {
		return nil, err
	}
	crash.At("supervisor.closed")
	runs = s.runsOf(e)
	for _, folder := range slices.Backward(runs) { // who waits for a turn before the turn itself: he would have it
		if err := s.silenceRun(ctx, folder, e); err != nil {
			return nil, err
		}
	}
	if k := s.keeperOf(e.Session); k != nil {
		return runs, s.closeKept(ctx, k, "archived")
	}
	return runs, nil
}

// closeAtDesk closes it between two of its messages: of one whose place was taken, the order is there.
func (s *Supervisor) closeAtDesk(ctx context.Context, e record.Errand) error {
	d, done := s.desk(e.Session)
	defer done()
	release, err := d.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.closeSession(e.Session, &e.At)
}

// closeSession notes that a session is archived, or with nil that it is not.
func (s *Supervisor) closeSession(id string, at *time.Time) error {
	err := state.Update(s.ctx, s.dir, record.SessionFile(id), func(sess *record.Session) error {
		if sess.Version == 0 {
			return errGone // of an execution that never began, or a workspace without one
		}
		if sess.ArchivedAt == nil || at == nil {
			sess.ArchivedAt = at
		}
		return nil
	})
	return ignoreAbsent(err)
}

// shelve tells that the workspace is archived, and moves what was its out of sight.
func (s *Supervisor) shelve(e record.Errand, w record.Workspace, runs []string, report api.Report) error {
	if err := errors.Join(s.emptyQueue(e.Session), s.tellArchived(e, report)); err != nil {
		return err
	}
	crash.At("supervisor.told")
	for _, folder := range runs {
		if err := s.stamp(folder, e.At); ignoreAbsent(err) != nil {
			return err
		}
	}
	if err := s.noteReport(w, report); err != nil {
		return err
	}
	crash.At("supervisor.archived")
	for _, folder := range runs {
		err := record.Archive(s.ctx, s.dir, folder)
		if api.CodeOf(err) == api.CodeBusy { // an attempt was ordered in the instant before the stamp
			if err = s.silenceRun(s.ctx, folder, e); err == nil {
				err = errors.Join(ignoreAbsent(s.stamp(folder, e.At)), record.Archive(s.ctx, s.dir, folder))
			}
		}
		if err != nil {
			return err
		}
	}
	if report.Pending == nil {
		return s.endErrand(w.ID)
	}
	e.Action, e.Stuck = "remove", report.Pending // what is left to do
	return s.beginErrand(e)
}

// emptyQueue takes the places away that nobody has any more: who was in the session has ended.
func (s *Supervisor) emptyQueue(id string) error {
	return ignoreAbsent(state.Update(s.ctx, s.dir, record.SessionFile(id), func(r *record.Session) error {
		if r.Version == 0 {
			return errGone
		}
		r.Queue = slices.DeleteFunc(r.Queue, func(t record.Turn) bool { return s.vacant(t.Folder) })
		return nil
	}))
}

// noteReport notes what became of the workspace.
func (s *Supervisor) noteReport(w record.Workspace, report api.Report) error {
	w.Report, w.ArchivedAt = &report, report.ArchivedAt
	return state.Put(s.ctx, s.dir, record.WorkspaceFile(w.ID), w)
}

// tellArchived puts the archive into the session's journal, once.
func (s *Supervisor) tellArchived(e record.Errand, report api.Report) error {
	if _, err := state.Read[record.Session](s.dir, record.SessionFile(e.Session)); err != nil {
		return ignoreAbsent(err)
	}
	b, err := s.openBook(e.Session)
	if err != nil {
		return err
	}
	data := map[string]any{"workspace": report.Workspace, "at": e.At}
	if report.Kept != nil && report.Kept.Ref != "" {
		data["ref"] = report.Kept.Ref
	}
	if report.Removed {
		data["removed"] = report.Worktree
	}
	if !s.toldLast(b, e) {
		told := event("archived", data)
		told.Session = e.Session
		err = b.append([]journal.Event{told}, journal.Commit{}, true)
	}
	return errors.Join(err, b.close())
}

// toldLast reports whether the last event of the journal says it already: we were killed behind it.
func (s *Supervisor) toldLast(b *book, e record.Errand) bool {
	last := b.w.Last()
	if last == 0 {
		return false
	}
	r := journal.NewReader(s.dir.Path(record.JournalDir(e.Session)), last-1)
	defer r.Close()
	events, err := r.Next()
	if err != nil || len(events) == 0 || events[len(events)-1].Type != "archived" {
		return false
	}
	var was struct{ At time.Time }
	return json.Unmarshal(events[len(events)-1].Data, &was) == nil && was.At.Equal(e.At)
}

// dirtyError refuses an archive of what git would not find again.
func dirtyError(w record.Workspace, lines []string) error {
	e := api.E(api.CodeDirty, "the worktree of %s has what git would not find again: %s", w.ID, listed(lines))
	return e.WithNext(fmt.Sprintf("commit or remove it, or archive without --refuse-dirty: it is kept then, and pintle workspace restore %s brings it back", w.ID))
}

// maxNamed is how many names a message has.
const maxNamed = 10

func listed(lines []string) string {
	text := ""
	for i, line := range lines {
		switch {
		case i == maxNamed:
			return fmt.Sprintf("%s, and %d more", text, len(lines)-i)
		case i > 0:
			text += ", "
		}
		text += line
	}
	return text
}

// departure is the archiving of a run that was to be archived at its end (--rm).
func departure(folder string, st record.Status) record.Errand {
	return record.Errand{
		Workspace: st.Workspace, Session: st.Session, Action: "archive", Folder: record.Hash(folder), Reason: "--rm", At: time.Now().UTC(),
	}
}
