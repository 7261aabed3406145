package journal

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// plain reads an intact line as appendLine writes most of them: an agent's flood passes through here again, and encoding/json
// takes several times as long. It says so if a line is another one, which encoding/json is to read: one with something
// escaped, or with a commit.
func plain(line []byte) (e Event, ok bool) {
	r := rest{line[:len(line)-sumLength], true}
	seq := r.number(`{"seq":`)
	e.Seq = uint64(seq)
	err := e.Time.UnmarshalText([]byte(r.text(`,"time":"`)))
	e.Session = r.text(`,"session":"`)
	if r.has(`,"execution":"`) {
		e.Execution = r.text(`,"execution":"`)
	}
	if r.has(`,"fence":`) {
		e.Fence = r.number(`,"fence":`)
	}
	if r.has(`,"turn":"`) {
		e.Turn = r.text(`,"turn":"`)
	}
	e.Type = r.text(`,"type":"`)
	if r.has(`,"data":`) {
		e.Data = bytes.Clone(r.data())
	}
	return e, r.ok && err == nil && seq >= 0 && len(r.b) == 0
}

// rest is what has not been read of a line; ok is false from where it is not plain.
type rest struct {
	b  []byte
	ok bool
}

func (r *rest) has(field string) bool { return bytes.HasPrefix(r.b, []byte(field)) }

// cut takes a field's name away, and n bytes behind it, which it returns.
func (r *rest) cut(field string, n int) []byte {
	if n < 0 || len(r.b) < len(field)+n || !r.has(field) {
		r.b, r.ok = nil, false
		return nil
	}
	value := r.b[len(field) : len(field)+n]
	r.b = r.b[len(field)+n:]
	return value
}

// number is a field's, up to the comma behind it.
func (r *rest) number(field string) int64 {
	digits := string(r.cut(field, bytes.IndexByte(r.b[min(len(r.b), len(field)):], ',')))
	n, err := strconv.ParseInt(digits, 10, 64)
	r.ok = r.ok && err == nil && strconv.FormatInt(n, 10) == digits
	return n
}

// text is a string's of which nothing is escaped, with the quotes around it taken away.
func (r *rest) text(field string) string {
	value := r.cut(field, bytes.IndexByte(r.b[min(len(r.b), len(field)):], '"'))
	for _, c := range value {
		if c < 0x20 || c >= 0x7f || c == '\\' {
			r.ok = false
		}
	}
	r.cut(`"`, 0)
	return string(value)
}

// data is all that is left, if that is one value and there is no commit behind it.
func (r *rest) data() []byte {
	value := r.cut(`,"data":`, len(r.b)-len(`,"data":`))
	r.ok = r.ok && !bytes.Contains(value, []byte(`"commit"`)) && json.Valid(value)
	return value
}
