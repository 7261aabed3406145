package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func canonical(t *testing.T, text string) string {
	t.Helper()
	v, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var b bytes.Buffer
	if err := writeCanonical(&b, v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b.String()
}

func TestF2_FingerprintOfTheDemand(t *testing.T) {
	const want = "77f0b1b372b562dda4db480443fe1fd4251e81412b8153a8d977a5327e5d419b"
	for _, params := range []string{
		`{"text":"continue"}`,
		` { "text" : "continue" , "expectedFence" : null } `,
		`{"session":"s1","operationId":"x","expectedFence":3,"fingerprint":"y","text":"con\u0074inue"}`,
	} {
		if got, err := Fingerprint("session/send", "s1", json.RawMessage(params)); got != want || err != nil {
			t.Errorf("%s: %s, %v", params, got, err)
		}
	}
}

func TestF2_FingerprintTellsRequestsApart(t *testing.T) {
	seen := map[string]string{}
	for _, c := range [][3]string{
		{"session/send", "s1", `{"text":"a"}`}, {"session/send", "s2", `{"text":"a"}`}, {"session/answer", "s1", `{"text":"a"}`},
		{"session/send", "s1", `{"text":"b"}`}, {"session/send", "s1", `{"text":["a"]}`}, {"session/send", "s1", `{"text":"a","x":null}`},
		{"session/send", "s1", `{"x":{"session":"s"}}`}, {"session/send", "s1", `{"x":{}}`}, {"session/send", "s1", ``},
		{"session/send", "s1", `{"x":9007199254740993}`}, {"session/send", "s1", `{"x":9007199254740992}`}, {"session/send", "s1", `{"x":"1"}`},
	} {
		got, err := Fingerprint(c[0], c[1], json.RawMessage(c[2]))
		if other, ok := seen[got]; ok || err != nil {
			t.Errorf("%v is %s: %v", c, other, err)
		}
		seen[got] = strings.Join(c[:], " ")
	}
	none, _ := Fingerprint("session/send", "s1", nil)
	for _, params := range []string{"null", "{}", " "} {
		if got, err := Fingerprint("session/send", "s1", json.RawMessage(params)); got != none || err != nil {
			t.Errorf("%q is not the same as nothing: %v", params, err)
		}
	}
}

func TestF2_FingerprintRefuses(t *testing.T) {
	deep := func(n int) string {
		return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`
	}
	if _, err := Fingerprint("m", "s", json.RawMessage(deep(maxDepth))); err != nil {
		t.Error(err)
	}
	for name, params := range map[string]string{
		"twice": `{"a":1,"a":1}`, "twice, escaped": `{"a":1,"\u0061":2}`, "twice, inside": `{"a":[{"b":1,"b":2}]}`, "twice, no field": `{"session":1,"session":2}`,
		"deep": deep(maxDepth + 1), "no UTF-8": "{\"a\":\"\xff\"}", "half a pair": `{"a":"\ud83d"}`, "half a pair in a name": `{"\ude00":1}`, "two halves": `{"a":"\ud83d\ud83d\ude00"}`,
		"array": `[]`, "string": `"a"`, "two": `{}{}`, "cut": `{"a":`, "comma": `{"a":1,}`, "no double": `{"a":1e400}`,
	} {
		if got, err := Fingerprint("m", "s", json.RawMessage(params)); got != "" || !errors.Is(err, ErrParams) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// The values are those of RFC 8785 (3.2.2, 3.2.3 and appendix B), but for integers, which stay as they are.
func TestF2_CanonicalIsRFC8785(t *testing.T) {
	for text, want := range map[string]string{
		` [ null , true , false ] `: `[null,true,false]`, `{"b":{},"a":[]}`: `{"a":[],"b":{}}`,
		`"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/"`:                             `"€$\u000f\nA'B\"\\\\\"/"`,
		`"\b\t\n\f\r\u001f\u007f<>&\u2028\u2029"`:                                     "\"\\b\\t\\n\\f\\r\\u001f\u007f<>&\u2028\u2029\"",
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`"\\ud83d"`: `"\\ud83d"`, `"\ud83d\ude00"`: `"😀"`,
		`333333333.33333329`: `333333333.3333333`, `1E30`: `1e+30`, `4.50`: `4.5`, `2e-3`: `0.002`, `0.000000000000000000000000001`: `1e-27`,
		`1.0`: `1`, `-0`: `0`, `-0.0`: `0`, `0e9`: `0`, `5e-324`: `5e-324`, `1.7976931348623157e308`: `1.7976931348623157e+308`,
		`1e20`: `100000000000000000000`, `1e21`: `1e+21`, `1e-6`: `0.000001`, `1e-7`: `1e-7`, `295147905179352830000.0`: `295147905179352830000`,
		`9007199254740993`: `9007199254740993`, `-12`: `-12`, `123456789012345678901234567890`: `123456789012345678901234567890`,
	} {
		if got := canonical(t, text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// spelling writes a value as somebody else might: members in any order, white space, escapes.
func spelling(r *rand.Rand, v any) string {
	space := func() string { return []string{"", " ", "\n", "\t", "\r\n  "}[r.IntN(5)] }
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			parts = append(parts, space()+spelling(r, name)+space()+":"+spelling(r, member))
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return space() + "{" + strings.Join(parts, ",") + "}" + space()
	case []any:
		for _, item := range v {
			parts = append(parts, spelling(r, item))
		}
		return space() + "[" + strings.Join(parts, ",") + space() + "]" + space()
	case string:
		for _, c := range v {
			plain, _ := json.Marshal(string(c))
			parts = append(parts, strings.Trim(string(plain), `"`))
			if c == '"' || c < 0x10000 && r.IntN(2) == 0 {
				parts[len(parts)-1] = fmt.Sprintf(`\u%04X`, c)
			}
		}
		return `"` + strings.Join(parts, "") + `"`
	}
	data, _ := json.Marshal(v)
	return space() + string(data) + space()
}

func anyValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just(any(nil)), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Int64().AsAny())
	if depth == 0 {
		return leaf
	}
	inner := anyValue(depth - 1)
	return rapid.OneOf(leaf, rapid.SliceOfN(inner, 0, 3).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny())
}

func TestF2_FingerprintDoesNotDependOnTheSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := any(rapid.MapOfN(rapid.String(), anyValue(3), 0, 5).Draw(t, "params"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plain, _ := json.Marshal(params)
		other := spelling(r, params)
		a, err := Fingerprint("m", "s", plain)
		b, other2 := Fingerprint("m", "s", json.RawMessage(other))
		if a != b || err != nil || other2 != nil {
			t.Fatalf("%s: %v\n%s: %v", plain, err, other, other2)
		}
	})
}

// Whatever comes: no panic, and what has a fingerprint keeps it in another spelling and in the canonical one.
func FuzzF2_Fingerprint(f *testing.F) {
	for _, seed := range []string{`{"text":"continue"}`, `{"a":[1.50,{"b":"\ud83d\ude00\u2028"}],"session":null}`, `{"a":1,"a":2}`, `{"\ud83d":1}`, `{"a":"\\u"}`, `{"a":-0e-0}`} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, params []byte, seed uint64) {
		want, err := Fingerprint("m", "s", params)
		if err != nil {
			return
		}
		v, err := decode(params)
		if err != nil {
			return // nothing at all
		}
		var b bytes.Buffer
		if err := writeCanonical(&b, v); err != nil {
			return // a field that does not count
		}
		for _, other := range []string{b.String(), spelling(rand.New(rand.NewPCG(seed, 0)), v)} {
			if got, err := Fingerprint("m", "s", json.RawMessage(other)); got != want || err != nil {
				t.Errorf("%s and %s: %v", params, other, err)
			}
		}
	})
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// operation is an id made at a time, told apart by n.
func operation(at time.Time, n int) string {
	return NewOperation(at, [16]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

func TestF4_CheckOperation(t *testing.T) {
	id := operation(noon, 0xab)
	if id != "1777896000000-000000ab000000000000000000000000" {
		t.Fatal(id)
	}
	for name, c := range map[string]struct {
		id        string
		now, mark time.Time
		want      error
	}{
		"now":            {id, noon, time.Time{}, nil},
		"5 min ahead":    {id, noon.Add(-OperationAhead), time.Time{}, nil},
		"further ahead":  {id, noon.Add(-OperationAhead - 1), time.Time{}, ErrOperation},
		"24 h old":       {id, noon.Add(OperationAge), time.Time{}, nil},
		"older":          {id, noon.Add(OperationAge + 1), time.Time{}, ErrOperationExpired},
		"after the mark": {id, noon, noon.Add(-time.Millisecond), nil},
		"at the mark":    {id, noon, noon, ErrOperationExpired},
		"below the mark": {id, noon, noon.Add(time.Hour), ErrOperationExpired},
		"empty":          {"", noon, time.Time{}, ErrOperation},
		"upper case":     {strings.ToUpper(id), noon, time.Time{}, ErrOperation},
		"12 digits":      {id[1:], noon, time.Time{}, ErrOperation},
		"31 hex":         {id[:len(id)-1], noon, time.Time{}, ErrOperation},
		"33 hex":         {id + "0", noon, time.Time{}, ErrOperation},
		"sign":           {"+" + id[1:], noon, time.Time{}, ErrOperation},
		"no hyphen":      {strings.Replace(id, "-", "_", 1), noon, time.Time{}, ErrOperation},
	} {
		if err := CheckOperation(c.id, c.now, c.mark); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestF4_NewOperationIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(rapid.Int64Range(0, 9_999_999_999_999).Draw(t, "now"))
		id := NewOperation(now, [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "random")))
		if at, ok := OperationTime(id); !ok || !at.Equal(now) {
			t.Fatalf("%s: %v", id, at)
		}
		if err := CheckOperation(id, now, time.Time{}); err != nil {
			t.Fatal(err)
		}
	})
}
