// Package journal keeps a session's events: JSON lines with a sequence and a checksum, in segments named
// by their first sequence, written by one process and read by any number.
//
// Invariants:
//   - One Append is whole or not there: its last line carries "commit", and what follows the last commit
//     is torn and cut at the next opening.
//   - A sequence that a reader was told is never given to another event.
//   - A line that was damaged inside the journal is set aside and reported, never fused with another.
//
// It does not know what events mean.
package journal

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"time"
)

// Event is one line of a journal.
type Event struct {
	Seq       uint64          `json:"seq"`
	Time      time.Time       `json:"time"`
	Session   string          `json:"session"`
	Execution string          `json:"execution,omitempty"`
	Fence     int64           `json:"fence,omitempty"`
	Turn      string          `json:"turn,omitempty"`
	Type      string          `json:"type"`
	Data      json.RawMessage `json:"data,omitempty"`
	// Commit stands on the last line of an append.
	Commit *Commit `json:"commit,omitempty"`
}

// Commit says up to where a runtime's output is in the journal, in bytes of its spools. It is empty for
// an append that took nothing from a spool.
type Commit struct {
	Runtime string `json:"runtime,omitempty"`
	Out     int64  `json:"out,omitempty"`
	Err     int64  `json:"err,omitempty"`
}

// castagnoli is made when it is first needed: most verbs read no journal.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// sumField begins the checksum, which is the last field of a line and covers all bytes before it.
const (
	sumField  = `,"sum":"`
	sumLength = len(sumField) + 8 + len(`"}`)
)

// appendLine appends the line of e with its newline. It is written by hand since an agent's flood passes
// through here: encoding/json takes three times as long.
func appendLine(b []byte, e *Event) []byte {
	start := len(b)
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","session":`...)
	b = appendString(b, e.Session)
	b = appendOptional(b, `,"execution":`, e.Execution)
	if e.Fence != 0 {
		b = strconv.AppendInt(append(b, `,"fence":`...), e.Fence, 10)
	}
	b = appendOptional(b, `,"turn":`, e.Turn)
	b = appendString(append(b, `,"type":`...), e.Type)
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	b = appendCommit(b, e.Commit)
	sum := crc32.Checksum(b[start:], castagnoli())
	return fmt.Appendf(b, `%s%08x"}`+"\n", sumField, sum)
}

func appendCommit(b []byte, c *Commit) []byte {
	if c == nil {
		return b
	}
	data, _ := json.Marshal(c) // strings and numbers: cannot fail
	return append(append(b, `,"commit":`...), data...)
}

func appendOptional(b []byte, field, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, field...), value)
}

// appendString is strconv's quoting only where JSON agrees with it: plain ASCII. The rest goes through
// encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			data, _ := json.Marshal(s)
			return append(b, data...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// intact reports whether line (without its newline) carries the checksum of its own bytes.
func intact(line []byte) bool {
	cut := len(line) - sumLength
	if cut < 1 || string(line[cut:cut+len(sumField)]) != sumField {
		return false
	}
	want, err := strconv.ParseUint(string(line[cut+len(sumField):len(line)-2]), 16, 32)
	return err == nil && uint32(want) == crc32.Checksum(line[:cut], castagnoli())
}

// parse returns the event of an intact line.
func parse(line []byte) (Event, error) {
	var e Event
	if !intact(line) {
		return e, ErrDamaged
	}
	if e, ok := plain(line); ok {
		return e, nil
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}
