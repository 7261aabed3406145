package record

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/state"
)

// expectTrust compares what Trusted says.
func expectTrust(t *testing.T, d *state.Dir, repository, fingerprint string, want bool) {
	t.Helper()
	if got, err := Trusted(d, repository, fingerprint); err != nil || got != want {
		t.Errorf("%s of %s: trusted %v, error %v", fingerprint, repository, got, err)
	}
}

func trust(t *testing.T, d *state.Dir, repository, fingerprint string) (already bool) {
	t.Helper()
	already, err := Trust(t.Context(), d, repository, fingerprint, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return already
}

func TestX26_TrustIsOfOneRepositoryAndOneFingerprint(t *testing.T) {
	d := open(t)
	expectTrust(t, d, "/a/.git", "1", false)
	if trust(t, d, "/a/.git", "1") || !trust(t, d, "/a/.git", "1") || trust(t, d, "/a/.git", "2") {
		t.Error("what was trusted already is not told from what was not")
	}
	expectTrust(t, d, "/a/.git", "1", true)
	expectTrust(t, d, "/a/.git", "2", true)
	expectTrust(t, d, "/a/.git", "3", false)
	expectTrust(t, d, "/b/.git", "1", false)
	data, err := os.ReadFile(d.Path(TrustFile("/a/.git")))
	want := `{"version":1,"repository":"/a/.git","trusted":[{"fingerprint":"1","at":"1970-01-01T00:00:01Z"},` +
		`{"fingerprint":"2","at":"1970-01-01T00:00:01Z"}]}` + "\n"
	if err != nil || string(data) != want {
		t.Errorf("record %s, error %v", data, err)
	}
}

func TestX26_DistrustForgetsAll(t *testing.T) {
	d := open(t)
	if had, err := Distrust(t.Context(), d, "/a"); had || err != nil {
		t.Errorf("had %v, error %v", had, err)
	}
	if _, err := os.Stat(d.Path("trusted")); err == nil {
		t.Error("a record was made of nothing")
	}
	trust(t, d, "/a", "1")
	trust(t, d, "/a", "2")
	trust(t, d, "/b", "1")
	for _, want := range []bool{true, false} {
		if had, err := Distrust(t.Context(), d, "/a"); had != want || err != nil {
			t.Errorf("had %v, error %v", had, err)
		}
	}
	expectTrust(t, d, "/a", "1", false)
	expectTrust(t, d, "/a", "2", false)
	expectTrust(t, d, "/b", "1", true)
}

func TestX26_DamagedTrustIsAnError(t *testing.T) {
	for _, text := range []string{
		"", "{", "null", `{"version":1,"repository":"/a","trusted":"1"}`, `{"version":1,"repository":"/b","trusted":[{"fingerprint":"1"}]}`,
		`{"version":1,"trusted":[{"fingerprint":"1"}]}`, `{"version":2,"repository":"/a","trusted":[{"fingerprint":"1"}]}`,
	} {
		d := open(t)
		trust(t, d, "/a", "0")
		if err := os.WriteFile(d.Path(TrustFile("/a")), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		is := func(err error) bool {
			return errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrNewer) && strings.Contains(text, "2")
		}
		if got, err := Trusted(d, "/a", "1"); got || !is(err) {
			t.Errorf("%q: trusted %v, error %v", text, got, err)
		}
		if _, err := Trust(t.Context(), d, "/a", "1", time.Now()); !is(err) {
			t.Errorf("%q: trust: error %v", text, err)
		}
		if data, _ := os.ReadFile(d.Path(TrustFile("/a"))); string(data) != text {
			t.Errorf("%q became %q", text, data)
		}
	}
}

func TestX26_TrustedByTwentyAtOnce(t *testing.T) {
	d := open(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { trust(t, d, "/a", fmt.Sprint(i)) })
	}
	all.Wait()
	for i := range 20 {
		expectTrust(t, d, "/a", fmt.Sprint(i), true)
	}
}
