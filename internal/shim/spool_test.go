package shim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSpool_KeepsFromTheAcknowledgedOn(t *testing.T) {
	dir := t.TempDir() + "/spool"
	if n, err := ReadSpool(dir, Out, 0, make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("of nothing: %d, %v", n, err)
	}
	s := newSpool(dir, Out, 1<<30)
	var want []byte
	for i := range 9 {
		piece := bytes.Repeat([]byte{byte('a' + i)}, 1<<20)
		if err := s.write(piece); err != nil {
			t.Fatal(err)
		}
		want = append(want, piece...)
	}
	if got := readSpool(t, dir, Out, 0); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	for _, ack := range []int64{5 << 20, 1 << 20, 100 << 20} { // the lower and the impossible change nothing
		s.ack(ack)
		if diff := cmp.Diff([]int64{5 << 20, 8 << 20}, segmentsOf(dir, Out)); diff != "" {
			t.Errorf("acknowledged %d: %s", ack, diff)
		}
	}
	if got := readSpool(t, dir, Out, 5<<20); !bytes.Equal(got, want[5<<20:]) {
		t.Errorf("%d bytes behind the acknowledged", len(got))
	}
	if _, err := ReadSpool(dir, Out, 0, make([]byte, 1)); !errors.Is(err, ErrGap) {
		t.Errorf("what was dropped: %v, want ErrGap", err)
	}
	if SpoolEnd(dir, Out) != 9<<20 || s.length() != 9<<20 || SpoolEnd(dir, Err) != 0 {
		t.Errorf("ends at %d, %d", SpoolEnd(dir, Out), s.length())
	}
}

// E5: an agent that stays for the next run keeps no byte of this one on disk.
func TestE5_NoByteIsLeftOfWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir, Out, 1<<30)
	for _, said := range []string{"first", "second", ""} {
		if err := s.write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		s.ack(s.length())
		if diff := cmp.Diff(map[string]string{segmentFile(Out, s.length()): ""}, contents(t, dir)); diff != "" {
			t.Errorf("after %q: %s", said, diff)
		}
		if got := SpoolEnd(dir, Out); got != s.length() {
			t.Errorf("ends at %d, want %d", got, s.length())
		}
		if n, err := ReadSpool(dir, Out, s.length(), make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %d, %v", n, err)
		}
		if _, err := ReadSpool(dir, Out, s.length()-1, make([]byte, 1)); !errors.Is(err, ErrGap) {
			t.Errorf("what was dropped: %v, want ErrGap", err)
		}
	}
	if err := s.write([]byte("third")); err != nil {
		t.Fatal(err)
	}
	if got := readSpool(t, dir, Out, 11); string(got) != "third" || SpoolEnd(dir, Out) != 16 {
		t.Errorf("then %q, up to %d", got, SpoolEnd(dir, Out))
	}
	s.ack(13) // somebody still says something when the run's end is told
	if diff := cmp.Diff(map[string]string{segmentFile(Out, 13): "ird"}, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// A disk that has no room for one more file, played by a directory that has its name.
func TestE5_NoByteIsLeftOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir, Out, 1<<30)
	inTheWay := filepath.Join(dir, "."+Out)
	if err := errors.Join(s.write([]byte("first")), os.Mkdir(inTheWay, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, acked := range []int64{3, 5} {
		s.ack(acked)
		want := strings.Repeat("\x00", int(acked)) + "first"[acked:]
		if got, err := os.ReadFile(filepath.Join(dir, segmentFile(Out, 0))); err != nil || string(got) != want || SpoolEnd(dir, Out) != 5 {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := errors.Join(s.write([]byte("second")), os.Remove(inTheWay)); err != nil {
		t.Fatal(err)
	}
	s.ack(6)
	if diff := cmp.Diff(map[string]string{segmentFile(Out, 6): "econd"}, contents(t, dir)); diff != "" || SpoolEnd(dir, Out) != 11 {
		t.Errorf("then up to %d, %s", SpoolEnd(dir, Out), diff)
	}
}

// Who reads while what he has acknowledged is dropped finds all that he has not.
func TestSpool_IsReadWhileItIsAcknowledged(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir, Out, 1<<30)
	want := make([]byte, 100_000)
	for i := range want {
		want[i] = byte(i % 251)
	}
	if err := s.write(want); err != nil {
		t.Fatal(err)
	}
	acks, acked := make(chan int64, len(want)), make(chan struct{})
	go func() { // as the shim, in its own time
		defer close(acked)
		for offset := range acks {
			for len(acks) > 0 {
				offset = <-acks
			}
			s.ack(offset)
		}
	}()
	p := make([]byte, 10)
	for at := 0; at < len(want); at += len(p) {
		if n, err := ReadSpool(dir, Out, int64(at), p); n < len(p) || !bytes.Equal(p, want[at:at+n]) {
			t.Errorf("at %d: %d, %v", at, n, err)
		}
		acks <- int64(at + len(p))
	}
	close(acks)
	<-acked
}

// Once the agent has ended its runtime's directory may be going: nothing is made there any more.
func TestSpool_MakesNoFileAfterTheEnd(t *testing.T) {
	dir := t.TempDir() + "/spool"
	s := newSpool(dir, Out, 1<<30)
	if err := errors.Join(s.write([]byte("all")), s.sync(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	s.ack(3)
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%q", contents(t, dir))
	}
}

// contents are the files of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

// Whatever is written and acknowledged, and wherever an ack stops: the names and sizes of the files alone tell the end,
// what was not acknowledged is there, and what was is not.
func TestSpool_Model(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			rt.Fatal(err)
		}
		m := &spoolModel{dir: dir, spool: newSpool(dir, Out, 1<<30)}
		m.spool.segment = 10
		rt.Repeat(map[string]func(*rapid.T){
			"write":   m.write,
			"ack":     m.ack,
			"ack all": func(*rapid.T) { m.acked = len(m.all); m.spool.ack(int64(m.acked)) },
			"cut ack": m.cutAck,
			"":        func(rt *rapid.T) { m.check(t, rt) },
		})
	})
}

// spoolModel is a spool and what it should hold.
type spoolModel struct {
	dir   string
	spool *spool
	all   []byte
	acked int
}

func (m *spoolModel) write(rt *rapid.T) {
	p := rapid.SliceOfN(rapid.Byte(), 1, 15).Draw(rt, "bytes")
	if err := m.spool.write(p); err != nil {
		rt.Fatal(err)
	}
	m.all = append(m.all, p...)
}

func (m *spoolModel) ack(rt *rapid.T) {
	m.acked = rapid.IntRange(m.acked, len(m.all)).Draw(rt, "acknowledged")
	m.spool.ack(int64(m.acked))
}

// cutAck is as much of an ack as a shim does that is killed before it removes anything. What that leaves on disk is
// checked.
func (m *spoolModel) cutAck(rt *rapid.T) {
	m.spool.cut(int64(rapid.IntRange(m.acked, len(m.all)).Draw(rt, "offset")))
}

func (m *spoolModel) check(t *testing.T, rt *rapid.T) {
	if got := SpoolEnd(m.dir, Out); got != int64(len(m.all)) {
		rt.Errorf("ends at %d, want %d", got, len(m.all))
	}
	if got := readSpool(t, m.dir, Out, int64(m.acked)); !bytes.Equal(got, m.all[m.acked:]) {
		rt.Errorf("%q, want %q", got, m.all[m.acked:])
	}
	firsts := segmentsOf(m.dir, Out)
	if len(firsts) > 0 && firsts[0] != int64(m.acked) {
		rt.Errorf("files at %d with %d of %d acknowledged", firsts, m.acked, len(m.all))
	}
}

func TestSpool_WriterWaitsForTheReader(t *testing.T) {
	s := newSpool(t.TempDir(), Out, 100)
	written := make(chan int64, 4)
	go func() {
		for range 4 {
			if err := s.write(make([]byte, 101)); err != nil {
				t.Error(err)
			}
			written <- s.length()
		}
		close(written)
	}()
	acked := int64(0)
	for end := range written {
		if end-101-acked > 100 { // it had to wait until no more than this was unacknowledged
			t.Errorf("wrote up to %d with %d acknowledged", end, acked)
		}
		acked = end
		s.ack(end)
	}
}

// recorder is an agent's input that fails when told.
type recorder struct {
	bytes.Buffer
	fail error
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.fail != nil {
		return 0, r.fail
	}
	return r.Buffer.Write(p)
}

func (r *recorder) Close() error { return nil }

func TestInput_EachOperationOnce(t *testing.T) {
	pipe, path := &recorder{}, t.TempDir()+"/stdin.jsonl"
	in, err := newInput(path, pipe)
	if err != nil {
		t.Fatal(err)
	}
	a := Input{N: 1, Op: "a", After: 5, Data: []byte("one\n")}
	for range 2 {
		if got, err := in.write(a, always); err != nil || !got.Written {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := in.write(Input{N: 2, Op: "a", Data: []byte("two\n")}, always); !errors.Is(err, errConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	pipe.fail = errors.New("broken pipe")
	if got, err := in.write(Input{N: 3, Op: "b", Data: []byte("three\n")}, always); err != nil || got.Written || got.Error != "broken pipe" {
		t.Errorf("%+v, %v", got, err)
	}
	pipe.fail = nil
	if got, err := in.write(Input{N: 4, Op: "b", Data: []byte("three\n")}, always); err != nil || got.Written { // not by itself
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := in.write(Input{N: 5, Op: "b"}, always); !errors.Is(err, errConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	in.end(always)
	in.end(always)
	if _, err := in.write(Input{N: 6, Op: "c"}, always); !errors.Is(err, errEnded) {
		t.Errorf("%v, want ended", err)
	}
	if pipe.String() != "one\n" {
		t.Errorf("the agent read %q", pipe.String())
	}
	a.Written = true
	want := []Input{a, {N: 3, Op: "b", Data: []byte("three\n"), Error: "broken pipe"}}
	got, err := ReadInputs(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestReadInputs_TornTailWasNeverAnIntent(t *testing.T) {
	path := t.TempDir() + "/stdin.jsonl"
	if got, err := ReadInputs(path); err != nil || got != nil {
		t.Errorf("absent: %v, %v", got, err)
	}
	whole := append(mustJSON(Input{N: 1, Op: "a", Data: []byte("x")}), '\n')
	torn := mustJSON(Input{N: 2, Op: "b", Data: []byte("y")})
	for cut := range len(torn) + 1 {
		if err := os.WriteFile(path, append(bytes.Clone(whole), torn[:cut]...), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadInputs(path)
		if err != nil || len(got) != 1 || got[0].Op != "a" || got[0].Written {
			t.Errorf("cut at %d: %+v, %v", cut, got, err)
		}
	}
}

func FuzzInputs(f *testing.F) {
	f.Add([]byte(`{"n":1,"op":"a","data":"eA=="}` + "\n" + `{"n":1,"written":true}` + "\n"))
	f.Add([]byte(`{"n":1,"written":true}` + "\n{"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := parseInputs(bufio.NewReader(bytes.NewReader(data)))
		if len(got) > bytes.Count(data, []byte("\n")) {
			t.Errorf("%d inputs of %q", len(got), data)
		}
	})
}

func FuzzWire(f *testing.F) {
	f.Add([]byte("{\"m\":\"hello\",\"epoch\":3}\n{\"m\":\"write\",\"data\":\"eA==\"}\n"))
	f.Add([]byte("{}\n\n\x00"))
	f.Add(bytes.Repeat([]byte("x"), 200))
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 100
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		for {
			line, err := readLine(r, limit)
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errMessage) {
					t.Error(err)
				}
				return
			}
			if len(line) > limit || bytes.IndexByte(line, '\n') >= 0 {
				t.Errorf("%q is no line of at most %d", line, limit)
			}
			m, err := decodeMessage(line)
			if err != nil {
				if !errors.Is(err, errMessage) {
					t.Error(err)
				}
				continue
			}
			again, err := decodeMessage(mustJSON(m))
			if diff := cmp.Diff(fmt.Sprintf("%+v", again.M), fmt.Sprintf("%+v", m.M)); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		}
	})
}

func always() (done func(), ok bool) { return func() {}, true }
