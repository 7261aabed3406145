package environ

import (
	"slices"
	"strings"
)

// Masked is what stands in the place of a secret.
const Masked = "[secret]"

// Masker replaces secrets by value. It is made once for an execution, never changes, and can be used by
// several goroutines; a nil one masks nothing.
//
// Text is read from the left; at each place the longest secret that begins there is replaced, and reading
// goes on behind it. That rule needs no more memory than one secret, so that a stream, cut anywhere, can
// be masked like the whole: see Held and Stream.
type Masker struct {
	// begin holds the forms of all secrets by their first byte, the longest first: a byte that begins none,
	// which is nearly every byte, costs one look-up.
	begin [256][]string
	empty bool
}

// NewMasker makes a Masker for Environment.SecretValues. It masks each value also as it looks inside JSON.
func NewMasker(values []string) *Masker {
	var all []string
	for _, value := range values {
		all = append(all, forms(value)...)
	}
	slices.SortFunc(all, longestFirst)
	m := &Masker{empty: len(all) == 0}
	for _, form := range slices.Compact(all) {
		m.begin[form[0]] = append(m.begin[form[0]], form)
	}
	return m
}

// Bytes replaces every secret in b, which must not be a piece of a stream: see Held. It returns b itself if
// there is none. It knows nothing of the syntax around: masking raw JSON may put [secret] in the place of a
// number, if a secret is made of digits.
func (m *Masker) Bytes(b []byte) []byte {
	if m == nil || m.empty {
		return b
	}
	out, _ := m.mask(b, true)
	return out
}

// Text does for a string what Bytes does.
func (m *Masker) Text(s string) string {
	if m == nil || m.empty {
		return s
	}
	b := []byte(s)
	if from, _ := m.find(b, 0, true); from == len(b) {
		return s
	}
	return string(m.Bytes(b))
}

// Held returns the length of the end of b that must wait for more of the stream, because a secret may begin
// there; it is less than the longest secret. b begins where the last piece was cut, that is, with what was
// held: then Bytes(b[:len(b)-Held(b)]) of all pieces, and Bytes of what is held at the end, are the mask of
// the whole. The end that is the longest beginning of a secret would not do: of a secret ABCD and another
// CDEFGH it would give up AB and lose sight of the first.
func (m *Masker) Held(b []byte) int {
	if m == nil || m.empty {
		return 0
	}
	for at := 0; ; {
		from, to := m.find(b, at, false)
		if to == from {
			return len(b) - from
		}
		at = to
	}
}

// mask returns b up to where it cannot be decided yet, masked, and the rest. With final nothing is left.
func (m *Masker) mask(b []byte, final bool) (masked, rest []byte) {
	var out []byte
	for at := 0; ; {
		from, to := m.find(b, at, final)
		if out == nil && to == from {
			return b[:from], b[from:]
		}
		out = append(out, b[at:from]...)
		if to == from {
			return out, b[from:]
		}
		out = append(out, Masked...)
		at = to
	}
}

// find returns the next secret at or behind at. If to equals from there is none before from, which is the
// end, or, unless final, a place where b ends inside what may become a secret.
func (m *Masker) find(b []byte, at int, final bool) (from, to int) {
	for i := at; i < len(b); i++ {
		candidates := m.begin[b[i]]
		if len(candidates) == 0 {
			continue
		}
		if !final && opens(candidates, b[i:]) {
			return i, i
		}
		if n := longest(candidates, b[i:]); n > 0 {
			return i, i + n
		}
	}
	return len(b), len(b)
}

// opens reports whether b is the beginning of a longer secret. Such a one is longer than any that b holds,
// so that it must be waited for.
func opens(candidates []string, b []byte) bool {
	for _, form := range candidates {
		if len(form) <= len(b) {
			return false
		}
		if form[:len(b)] == string(b) {
			return true
		}
	}
	return false
}

// longest returns the length of the longest secret with which b begins.
func longest(candidates []string, b []byte) int {
	for _, form := range candidates {
		if len(form) <= len(b) && form == string(b[:len(form)]) {
			return len(form)
		}
	}
	return 0
}

// forms returns how a secret can look in a stream: as it is, and inside a JSON string, also one that stands
// inside another (a tool's arguments are JSON within a frame of JSON). A newline at its end does not belong to
// it: files have one, and what prints the value often has none.
func forms(value string) []string {
	if trimmed := strings.TrimRight(value, "\r\n"); trimmed != "" {
		value = trimmed
	}
	if value == "" {
		return nil
	}
	all := []string{value}
	for _, quote := range quotings {
		once := quote(value)
		all = append(all, once, quote(once))
	}
	return all
}
