package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// SegmentSize is the size in bytes at which a segment is closed and the next begins.
const SegmentSize = 16 << 20

func segmentName(first uint64) string { return fmt.Sprintf("%020d.jsonl", first) }

// segments returns the first sequences of the segments in dir, in order; none if there is no dir.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var firsts []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if first, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			firsts = append(firsts, first)
		}
	}
	slices.Sort(firsts)
	return firsts, nil
}

// Floor is a sequence that no later event of the journal in dir is at or before, without reading it: the newest segment
// begins behind it. 0 without a journal.
func Floor(dir string) uint64 {
	firsts, err := segments(dir)
	if err != nil || len(firsts) == 0 {
		return 0
	}
	return firsts[len(firsts)-1] - 1
}

// scan is what a segment's bytes hold.
type scan struct {
	end     int64             // of the last intact commit line: what follows is torn
	seq     uint64            // the highest of such a line; 0 if there is none
	commits map[string]Commit // the last of every runtime
	damaged []int64           // where damaged lines begin before end
}

// examine reads a segment. A damaged line in front of an intact commit is damage; one behind the last is
// the tail of an append that was interrupted.
func examine(data []byte) scan {
	s := scan{commits: map[string]Commit{}}
	var suspects []int64
	for at := int64(0); at < int64(len(data)); {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			break
		}
		line := data[at : at+int64(n)]
		if !intact(line) {
			suspects = append(suspects, at)
		} else if commit, seq, ok := commitOf(line); ok {
			s.damaged, suspects = append(s.damaged, suspects...), nil
			s.end, s.seq = at+int64(n)+1, max(s.seq, seq)
			if commit.Runtime != "" {
				s.commits[commit.Runtime] = commit
			}
		}
		at += int64(n) + 1
	}
	return s
}

// commitOf returns the commit and sequence of an intact line. Only lines that seem to carry one are
// decoded, since this runs over whole segments at every adoption; the decoder decides.
func commitOf(line []byte) (Commit, uint64, bool) {
	tail := line[max(0, len(line)-sumLength-300):]
	if !bytes.Contains(tail, []byte(`,"commit":{`)) {
		return Commit{}, 0, false
	}
	var e struct {
		Seq    uint64  `json:"seq"`
		Commit *Commit `json:"commit"`
	}
	if json.Unmarshal(line, &e) != nil || e.Commit == nil {
		return Commit{}, 0, false
	}
	return *e.Commit, e.Seq, true
}

// setAside keeps a copy of a damaged segment beside the journal, once for its size.
func setAside(dir string, first uint64, data []byte) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s.damaged-%d", segmentName(first), len(data)))
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	return path, os.WriteFile(path, data, 0o600) //nolint:forbidigo // a copy, and no record
}
