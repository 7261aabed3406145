package codex

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// change is one of a file, in the server's words.
type change struct {
	Path string     `json:"path"`
	Kind changeKind `json:"kind"`
	Diff string     `json:"diff"`
	Note string     `json:"note,omitempty"` // ours: that the diff is not all of it
}

type changeKind struct {
	Type  string `json:"type"`
	Moved string `json:"move_path,omitempty"`
}

// names is how long it is but for the diff.
func (c change) names() int { return len(c.Path) + len(c.Kind.Type) + len(c.Kind.Moved) }

// changes are what a call would do to files, as far as there was room.
type changes struct {
	Changes []change `json:"changes"`
	Note    string   `json:"note,omitempty"`
}

// changesLimit is how much of a call's changes is shown, in bytes, and how much is kept of all calls that are open.
const changesLimit = 64 << 10

// shown is what there is room for, and a note where that is not all: who is asked must know.
func shown(all []change, room int) *changes {
	s := &changes{Changes: []change{}}
	for i, c := range all {
		if room -= c.names(); room < 0 || i == most {
			s.Note = fmt.Sprintf("%d of %d files are left out", len(all)-i, len(all))
			break
		}
		if len(c.Diff) > room {
			c.Note = fmt.Sprintf("%d of %d bytes", room, len(c.Diff))
			c.Diff = strings.ToValidUTF8(c.Diff[:room], "")
		}
		room -= len(c.Diff)
		s.Changes = append(s.Changes, c)
	}
	return s
}

// size is how much room they take.
func (s *changes) size() (n int) {
	if s == nil {
		return 0
	}
	for _, c := range s.Changes {
		n += c.names() + len(c.Diff)
	}
	return n
}

// files are the names of all files that change, before and after.
func (s *changes) files() (names []string) {
	for _, c := range s.Changes {
		names = append(names, c.Path)
		if c.Kind.Moved != "" {
			names = append(names, c.Kind.Moved)
		}
	}
	return names
}

// keep is what is kept of an open call's changes: they are asked about without being said again.
func (f *fold) keep(it item) *changes {
	if it.Type != "fileChange" || len(it.Changes) == 0 {
		return nil
	}
	room := changesLimit
	for _, o := range f.Items {
		room -= o.Changes.size()
	}
	return shown(it.Changes, room)
}

// asksToChange are the changes that a question is about; nil if it is about none that are known.
func (f *fold) asksToChange(q question) *changes {
	if i := f.find(string(q.ItemID)); i >= 0 && f.Items[i].Changes != nil {
		return f.Items[i].Changes
	}
	if len(q.FileChanges) == 0 {
		return nil
	}
	return shown(q.changes(), changesLimit)
}

// changes are those that the older question has in it, in the newer words.
func (q question) changes() (all []change) {
	for _, path := range slices.Sorted(maps.Keys(q.FileChanges)) {
		var older struct {
			changeKind
			Content string
			Diff    string `json:"unified_diff"`
		}
		_ = json.Unmarshal(q.FileChanges[path], &older)
		all = append(all, change{Path: path, Kind: older.changeKind, Diff: older.Diff + older.Content})
	}
	return all
}
