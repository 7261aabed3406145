package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep params may nest.
const maxDepth = 64

// decode reads one JSON value more strictly than encoding/json does: what two readers could take for two
// different values (a name twice, half of a surrogate pair, bytes that are no UTF-8) has no fingerprint.
func decode(data []byte) (any, error) {
	switch {
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%w: not valid UTF-8", ErrParams)
	case !json.Valid(data):
		return nil, fmt.Errorf("%w: not JSON", ErrParams)
	case halfPair(data):
		return nil, fmt.Errorf("%w: half of a surrogate pair", ErrParams)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return decodeValue(d, 0)
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	delim, ok := token.(json.Delim)
	switch {
	case !ok:
		return token, nil
	case depth == maxDepth:
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrParams, maxDepth)
	case delim == '{':
		return decodeObject(d, depth+1)
	}
	return decodeArray(d, depth+1)
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.More() {
		name, err := decodeValue(d, depth)
		if err != nil {
			return nil, err
		}
		value, err := decodeValue(d, depth)
		if err != nil {
			return nil, err
		}
		if _, twice := members[name.(string)]; twice {
			return nil, fmt.Errorf("%w: %q is there twice", ErrParams, name)
		}
		members[name.(string)] = value
	}
	_, err := d.Token()
	return members, err
}

func decodeArray(d *json.Decoder, depth int) (any, error) {
	items := []any{}
	for d.More() {
		item, err := decodeValue(d, depth)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.Token()
	return items, err
}

// halfPair reports whether valid JSON escapes a surrogate without its other half. encoding/json reads it
// as U+FFFD, and so would take different texts for the same.
func halfPair(data []byte) bool {
	for i := bytes.IndexByte(data, '\\'); i >= 0; i = bytes.IndexByte(data, '\\') {
		if data[i+1] != 'u' {
			data = data[i+2:]
			continue
		}
		r := escaped(data[i:])
		data = data[i+6:]
		if !utf16.IsSurrogate(r) {
			continue
		}
		if !bytes.HasPrefix(data, []byte(`\u`)) || utf16.DecodeRune(r, escaped(data)) == utf8.RuneError {
			return true
		}
		data = data[6:]
	}
	return false
}

// escaped is the character of the \uxxxx that data begins with.
func escaped(data []byte) rune {
	r, _ := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(r)
}

// writeCanonical writes a value that decode gave as RFC 8785 says, except that an integer stays as it was
// given: past 2^53 it would be another number.
func writeCanonical(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		writeString(b, v)
	case json.Number:
		return writeNumber(b, string(v))
	case []any:
		return writeArray(b, v)
	case map[string]any:
		return writeObject(b, v)
	default:
		return fmt.Errorf("%w: a %T", ErrParams, v)
	}
	return nil
}

func writeArray(b *bytes.Buffer, items []any) error {
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeCanonical(b, item); err != nil {
			return err
		}
	}
	b.WriteByte(']')
	return nil
}

func writeObject(b *bytes.Buffer, members map[string]any) error {
	b.WriteByte('{')
	for i, name := range sortedNames(members) {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, name)
		b.WriteByte(':')
		if err := writeCanonical(b, members[name]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// sortedNames sorts by UTF-16 code units, as RFC 8785 does: U+1F600 comes before U+FB01.
func sortedNames(members map[string]any) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return names
}

var shortEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`}

// writeString is not encoding/json's, which escapes U+2028 and U+2029, too.
func writeString(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for _, r := range s {
		short, ok := shortEscapes[r]
		switch {
		case ok:
			b.WriteString(short)
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func writeNumber(b *bytes.Buffer, literal string) error {
	if literal != "-0" && !strings.ContainsAny(literal, ".eE") {
		b.WriteString(literal)
		return nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return fmt.Errorf("%w: %s is no number that a double holds", ErrParams, literal)
	}
	b.WriteString(shortest(f))
	return nil
}

// shortest is ES6's Number.prototype.toString.
func shortest(f float64) string {
	if f == 0 {
		return "0" // -0, too
	}
	if size := math.Abs(f); size >= 1e-6 && size < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	return strings.Replace(s, "e-0", "e-", 1) // Go pads the exponent to two digits
}
