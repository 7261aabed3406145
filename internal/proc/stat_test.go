package proc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// line is what the kernel writes for st, with unlike numbers in the fields that are not read.
func line(st Stat) string {
	return fmt.Sprintf("%d (%s) %c %d %d %d 34816 -1 4194560 91 92 93 94 95 96 97 98 20 -5 %d 0 %d 24494080 1400 %s\n",
		st.PID, st.Comm, st.State, st.PPID, st.PGID, st.SID, st.Threads, st.StartTicks,
		strings.TrimSpace(strings.Repeat("18446744073709551615 ", 28)))
}

func TestParseStat_NameMayHoldAnything(t *testing.T) {
	for _, comm := range []string{"sh", "", " ", ")", "(", "a) R 1 1", "a\nb", ") Z 1 1 1 1 1", "((", "\xff"} {
		want := Stat{PID: 42, Comm: comm, State: 'S', PPID: 1, PGID: 42, SID: 40, Threads: 3, StartTicks: 987654321}
		got, err := ParseStat([]byte(line(want)))
		if err != nil {
			t.Errorf("%q: %v", comm, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", comm, diff)
		}
	}
}

func TestParseStat_RefusesWhatIsCutOrForeign(t *testing.T) {
	whole := line(Stat{PID: 42, Comm: "sh", State: 'S', Threads: 1})
	for _, bad := range []string{
		"", "(", ")", "42", "42 (sh", ") 42 (", "x (sh) S 1 1 1", "42 (sh) S 1 1 1", whole[:60],
		strings.Replace(whole, " S ", " SS ", 1), strings.Replace(whole, "42", "9999999999999999999999", 1),
	} {
		if st, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v, want an error", bad, st)
		}
	}
}

func TestParseStat_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Stat{
			PID:     rapid.IntRange(1, 1<<22).Draw(t, "pid"),
			Comm:    string(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 64).Draw(t, "comm")),
			State:   rapid.SampledFrom([]byte("RSDTtZXIPKW")).Draw(t, "state"),
			PPID:    rapid.IntRange(0, 1<<22).Draw(t, "ppid"),
			PGID:    rapid.IntRange(-1, 1<<22).Draw(t, "pgid"),
			SID:     rapid.IntRange(-1, 1<<22).Draw(t, "sid"),
			Threads: rapid.IntRange(0, 1<<16).Draw(t, "threads"),

			StartTicks: rapid.Uint64().Draw(t, "start"),
		}
		got, err := ParseStat([]byte(line(want)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzParseStat(f *testing.F) {
	for _, comm := range []string{"sh", "a) R 1", "((", "\n"} {
		f.Add([]byte(line(Stat{PID: 1, Comm: comm, State: 'R', PPID: 2, PGID: 3, SID: 4, Threads: 5, StartTicks: 6})))
	}
	f.Add([]byte("1 () Z"))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, b []byte) {
		st, err := ParseStat(b)
		if err != nil {
			return
		}
		again, err := ParseStat([]byte(line(st)))
		if err != nil {
			t.Fatalf("%q parsed to %+v, which does not parse: %v", b, st, err)
		}
		if diff := cmp.Diff(st, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLiveness_String(t *testing.T) {
	for l, want := range map[Liveness]string{Dead: "dead", Alive: "alive", Uncertain: "uncertain"} {
		if got := l.String(); got != want {
			t.Errorf("%d is %q, want %q", l, got, want)
		}
	}
}
