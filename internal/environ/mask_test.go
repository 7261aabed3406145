package environ

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMaskReplacesWholeSecrets(t *testing.T) {
	m := NewMasker([]string{"sesame-open", "sesame", "open-door", ""})
	for in, want := range map[string]string{
		"":                        "",
		"nothing":                 "nothing",
		"sesam":                   "sesam",
		"sesame":                  "[secret]",
		"a sesame b":              "a [secret] b",
		"sesame-open":             "[secret]", // the longest wins
		"sesame-ope":              "[secret]-ope",
		"sesamesesame":            "[secret][secret]",
		"sesesame":                "se[secret]",
		"sesame-open-door":        "[secret]-door", // the one from the left wins
		"sesame open-door sesame": "[secret] [secret] [secret]",
	} {
		if got := m.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
		if got := string(m.Bytes([]byte(in))); got != want {
			t.Errorf("Bytes(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMaskWithoutASecretCopiesNothing(t *testing.T) {
	b := []byte("no secret here, s, se, ses")
	for name, m := range map[string]*Masker{"nil": nil, "empty": NewMasker(nil), "other": NewMasker([]string{"sesame"})} {
		if got := m.Bytes(b); &got[0] != &b[0] || len(got) != len(b) {
			t.Errorf("%s: Bytes copied", name)
		}
		if n := testing.AllocsPerRun(10, func() { m.Bytes(b); m.Held(b) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestMaskLeavesItsInputAlone(t *testing.T) {
	b := []byte("a sesame b")
	NewMasker([]string{"sesame"}).Bytes(b)
	if string(b) != "a sesame b" {
		t.Errorf("input became %q", b)
	}
}

func TestMaskTheFormsInsideJSON(t *testing.T) {
	secret := "line \"one\"\nünd <zwei> \\ 🔑\x01\ttail"
	m := NewMasker([]string{secret})
	plain := `{"arguments":"line \"one\"\nünd <zwei> \\ 🔑\u0001\ttail"}`
	python := `["line \"one\"\n\u00fcnd <zwei> \\ \ud83d\udd11\u0001\ttail"]`
	golang, _ := json.Marshal(map[string]string{"a": "x" + secret + "y"})
	nested, _ := json.Marshal(map[string]string{"frame": string(golang)})
	for _, text := range []string{secret, plain, python, string(golang), string(nested)} {
		got := m.Text(text)
		if strings.Contains(got, "zwei") || strings.Contains(got, "tail") || !strings.Contains(got, Masked) {
			t.Errorf("Text(%s) = %s", text, got)
		}
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("Text(%s) = %s is no JSON any more", text, got)
		}
	}
}

func TestMaskAFileWithoutItsLastNewline(t *testing.T) {
	m := NewMasker([]string{"-----BEGIN\nabc\n-----END\n"})
	if got, want := m.Text("x-----BEGIN\nabc\n-----ENDy"), "x[secret]y"; got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

func TestMaskABrokenCharacter(t *testing.T) {
	secret := "bytes\xff\"\xfe-and"
	for _, text := range []string{secret, "bytes\xff\\\"\xfe-and"} {
		if got := NewMasker([]string{secret}).Text(text); got != Masked {
			t.Errorf("Text(%q) = %q", text, got)
		}
	}
}

func TestE5_SecretInTwoPieces(t *testing.T) {
	secret, text := "correct-horse", "say correct-horse, correct"
	for cut := range len(text) {
		s := NewStream(NewMasker([]string{secret}))
		got := string(s.Write([]byte(text[:cut]))) + string(s.Write([]byte(text[cut:]))) + string(s.Flush())
		if want := "say [secret], correct"; got != want {
			t.Errorf("cut at %d: %q, want %q", cut, got, want)
		}
	}
}

func TestE5_HeldIsWhatMayBecomeASecret(t *testing.T) {
	m := NewMasker([]string{"ABCD", "CDEFGH", "ABCDX"})
	for in, want := range map[string]int{
		"": 0, "z": 0, "A": 1, "zAB": 2, "zABC": 3,
		"ABCD":    4, // ABCDX may follow, and AB alone must not go
		"ABCDE":   0, // decided: the E is nobody's
		"CDEF":    4,
		"ABCDXCD": 2,
	} {
		if got := m.Held([]byte(in)); got != want {
			t.Errorf("Held(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestE5_OneByteAtATime(t *testing.T) {
	s := NewStream(NewMasker([]string{"aaab", "aab"}))
	var got []byte
	for _, c := range []byte("aaaab.aab.aa") {
		got = append(got, s.Write([]byte{c})...)
	}
	if got = append(got, s.Flush()...); string(got) != "a[secret].[secret].aa" {
		t.Errorf("got %q", got)
	}
}

// A stream cut anywhere is masked like the whole, with Stream and with Held and Bytes alike, and holds no secret.
func TestE5_AnyCutMasksLikeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.StringMatching(`[ab"\n]{1,7}`), 0, 5).Draw(t, "secrets")
		m := NewMasker(secrets)
		text := drawText(t, secrets)
		whole := string(m.Bytes([]byte(text)))
		pieces := drawPieces(t, text)
		if got := throughStream(m, pieces); got != whole {
			t.Fatalf("Stream of %q: %q, want %q", pieces, got, whole)
		}
		if got := throughHeld(t, m, pieces); got != whole {
			t.Fatalf("Held and Bytes of %q: %q, want %q", pieces, got, whole)
		}
		for _, secret := range secrets {
			if secret = strings.TrimRight(secret, "\n"); secret != "" && strings.Contains(whole, secret) {
				t.Fatalf("the mask of %q holds %q: %q", text, secret, whole)
			}
		}
	})
}

// drawText mixes whole secrets, as they are and as JSON, with pieces that nearly are some.
func drawText(t *rapid.T, secrets []string) string {
	parts := []*rapid.Generator[string]{rapid.StringMatching(`[ab"\\n\n ]{0,9}`)}
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret)
		parts = append(parts, rapid.Just(secret), rapid.Just(string(quoted)))
	}
	return strings.Join(rapid.SliceOfN(rapid.OneOf(parts...), 0, 12).Draw(t, "text"), "")
}

func drawPieces(t *rapid.T, text string) []string {
	var pieces []string
	for text != "" {
		n := rapid.IntRange(0, len(text)).Draw(t, "cut")
		pieces, text = append(pieces, text[:n]), text[n:]
		if n == 0 {
			pieces, text = append(pieces, text[:1]), text[1:]
		}
	}
	return pieces
}

func throughStream(m *Masker, pieces []string) string {
	var out bytes.Buffer
	s := NewStream(m)
	for _, piece := range pieces {
		out.Write(s.Write([]byte(piece)))
	}
	out.Write(s.Flush())
	return out.String()
}

func throughHeld(t *rapid.T, m *Masker, pieces []string) string {
	var out bytes.Buffer
	var held []byte
	for _, piece := range pieces {
		held = append(held, piece...)
		n := len(held) - m.Held(held)
		if n < 0 || n > len(held) {
			t.Fatalf("Held(%q) leaves %d", held, n)
		}
		out.Write(m.Bytes(held[:n]))
		held = append([]byte(nil), held[n:]...)
	}
	out.Write(m.Bytes(held))
	return out.String()
}

func TestHeldIsBoundedByTheLongestSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`a{1,5}b{0,3}a{1,5}`).Draw(t, "secret")
		text := rapid.StringMatching(`[ab]{0,40}`).Draw(t, "text")
		if held := NewMasker([]string{secret}).Held([]byte(text)); held >= len(secret) {
			t.Fatalf("Held = %d with a secret of %d", held, len(secret))
		}
	})
}

func BenchmarkMasker(b *testing.B) {
	line := `{"method":"item/agentMessage/delta","params":{"threadId":"0199","delta":" the secret of a good sketch "}}` + "\n"
	text := []byte(strings.Repeat(line, 10_000))
	secrets := []string{
		"sk-ant-api03-0123456789abcdef0123456789abcdef", "ghp_0123456789abcdefghijklmnopqrstuvwxyz", "the quick brown fox",
		"AKIA0123456789ABCDEF", "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n", "eyJhbGciOiJIUzI1NiJ9.e30.abc",
	}
	for name, m := range map[string]*Masker{"none": NewMasker(nil), "six": NewMasker(secrets)} {
		b.Run(name+"/bytes", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				m.Bytes(text)
			}
		})
		b.Run(name+"/held", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Held(text)
			}
		})
	}
}
