package record

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// archived is an execution that ended so and was archived.
func archivedAs(t *testing.T, d *state.Dir, id string, o session.Outcome) (hash string) {
	t.Helper()
	hash = claim(t, d, id, 0).Folder
	at := time.Unix(7, 0).UTC()
	become(t, d, hash, func(st *Status) {
		code := o.Exit()
		st.Attempt, st.Phase, st.Outcome, st.ExitCode, st.Workspace, st.ArchivedAt = 1, string(session.Ended), string(o), &code, "w-1", &at
	})
	if err := Archive(t.Context(), d, hash); err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestX36_AnArchivedKeyIsReplayed(t *testing.T) {
	d := open(t)
	hash := archivedAs(t, d, "k", session.Failed)
	c, err := Claim(t.Context(), d, order("k"), 0, fine)
	if err != nil || c.Verdict != session.Replay || c.New || !IsArchived(c.Folder) {
		t.Fatalf("%+v, %v", c, err)
	}
	other := order("k")
	other.Payload.Argv = []string{"false"}
	_, err = Claim(t.Context(), d, other, 0, fine)
	wantCode(t, err, api.CodeConflict)
	if found, err := Find(d, "k"); err != nil || found != inArchive(hash) {
		t.Errorf("found %s, %v", found, err)
	}
	if folders, _ := Folders(d); len(folders) > 0 {
		t.Errorf("executions/ still has %v", folders)
	}
	if err := Archive(t.Context(), d, hash); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestCase28_NothingBeginsInWhatIsArchived(t *testing.T) {
	d := open(t)
	hash := archivedAs(t, d, "k", session.Failed)
	_, err := Claim(t.Context(), d, order("k"), 2, fine)
	if e := wantCode(t, err, api.CodeArchived); e.Next != "pintle workspace restore w-1" {
		t.Errorf("next is %q", e.Next)
	}
	for _, folder := range []string{hash, inArchive(hash)} {
		wantCode(t, Retry(t.Context(), d, folder, "boot", 0, time.Now()), api.CodeArchived)
	}
	if recorded, err := Cancel(t.Context(), d, hash, api.Cancel{Action: "stop"}); recorded || err != nil {
		t.Errorf("cancel: %v, %v", recorded, err)
	}
	if folders, _ := Folders(d); len(folders) > 0 {
		t.Errorf("executions/ has %v", folders)
	}
}

func TestX21_UnarchiveBringsTheRecordsBack(t *testing.T) {
	d := open(t)
	hash := archivedAs(t, d, "k", session.Completed)
	for range 2 {
		if err := Unarchive(t.Context(), d, hash); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := Find(d, "k"); err != nil || found != hash {
		t.Errorf("found %s, %v", found, err)
	}
}

func TestX16_WhatHasNotEndedIsNotArchived(t *testing.T) {
	d := open(t)
	hash := claim(t, d, "k", 1).Folder
	wantCode(t, Archive(t.Context(), d, hash), api.CodeBusy)
	end(t, d, hash, 1, session.Failed)
	claim(t, d, "k", 2) // it is ordered again before it is moved
	wantCode(t, Archive(t.Context(), d, hash), api.CodeBusy)
}

func TestX36_ATombstoneAnswersARepeat(t *testing.T) {
	d := open(t)
	hash := archivedAs(t, d, "k", session.Failed)
	if size, err := Expire(t.Context(), d, hash, true); err != nil || size == 0 {
		t.Fatalf("dry: %d, %v", size, err)
	}
	for range 2 {
		if _, err := Expire(t.Context(), d, hash, false); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Claim(t.Context(), d, order("k"), 0, fine)
	if err != nil || c.Verdict != session.Replay {
		t.Fatalf("%+v, %v", c, err)
	}
	e, err := View(d, c.Folder)
	if err != nil || !e.ResultExpired || e.ID != "k" || e.Outcome != "failed" || *e.ExitCode != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	other := order("k")
	other.Payload.Argv = []string{"false"}
	_, err = Claim(t.Context(), d, other, 0, fine)
	wantCode(t, err, api.CodeConflict)
	_, err = Claim(t.Context(), d, order("k"), 2, fine)
	wantCode(t, err, api.CodeArchived)
	if err := Remove(t.Context(), d, c.Folder); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, d, "k", 0); !c.New {
		t.Error("the key is not free after rm")
	}
}

// Of claims and an archiving at the same time, whoever comes first, one execution is there and never two.
func TestX36_ClaimsDuringArchiving(t *testing.T) {
	d := open(t)
	for range 20 {
		hash := claim(t, d, "k", 0).Folder
		end(t, d, hash, 1, session.Completed)
		var all sync.WaitGroup
		all.Go(func() {
			if err := Archive(t.Context(), d, hash); err != nil {
				t.Error(err)
			}
		})
		for range 4 {
			all.Go(func() {
				if c, err := Claim(t.Context(), d, order("k"), 0, fine); err != nil || c.New {
					t.Errorf("%+v, %v", c, err)
				}
			})
		}
		all.Wait()
		if err := Remove(t.Context(), d, hash); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(d, "k"); err == nil || errors.Is(err, fs.ErrExist) {
			t.Fatalf("after rm: %v", err)
		}
	}
}

func TestOneIDThatIsListedTwiceIsNotAmbiguous(t *testing.T) {
	if id, err := only("w-0123", []string{"w-0123456789abcdef", "w-0123456789abcdef"}); err != nil || id != "w-0123456789abcdef" {
		t.Errorf("%q, %v", id, err)
	}
	_, err := only("w-0123", []string{"w-0123456789abcdef", "w-0123456789abcdee"})
	wantCode(t, err, api.CodeAmbiguous)
}
