package testscripts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc/api"
)

// held is a stage with a client that holds a session of the stand-in.
func held(b *testing.B) (*stage, *driver, api.Session) {
	b.Helper()
	s, d := desk(b)
	return s, d, d.open()
}

// desk is a stage with a client.
func desk(b *testing.B) (*stage, *driver) {
	b.Helper()
	s := benchStage(b)
	s.t, s.work = b, filepath.Join(s.dir, "w")
	bin := filepath.Join(s.dir, "bin")
	codex := "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(binary), "standin") + "\n"
	if err := errors.Join(os.Mkdir(s.work, 0o700), os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "codex"), []byte(codex), 0o700)); err != nil {
		b.Fatal(err)
	}
	s.serving()
	return s, s.join("bench")
}

// BenchmarkAttach is an attach at the socket, of a session that others share.
func BenchmarkAttach(b *testing.B) {
	s, d, made := held(b)
	call[api.Detached](d, api.MethodSessDetach, api.Detach{Session: made.ID})
	call[api.Attached](d, api.MethodSessAttach, api.Attach{Session: made.ID})
	other := s.join("other")
	measure(b, func(int) {
		call[api.Detached](other, api.MethodSessDetach, api.Detach{Operation: operation(), Session: made.ID})
	}, func(int) {
		call[api.Attached](other, api.MethodSessAttach, api.Attach{Operation: operation(), Session: made.ID})
	})
}

// BenchmarkDetach is a detach at the socket.
func BenchmarkDetach(b *testing.B) {
	s, d, made := held(b)
	call[api.Detached](d, api.MethodSessDetach, api.Detach{Session: made.ID})
	call[api.Attached](d, api.MethodSessAttach, api.Attach{Session: made.ID})
	other := s.join("other")
	measure(b, func(int) {
		call[api.Attached](other, api.MethodSessAttach, api.Attach{Operation: operation(), Session: made.ID})
	}, func(int) {
		call[api.Detached](other, api.MethodSessDetach, api.Detach{Operation: operation(), Session: made.ID})
	})
}

// BenchmarkSend is a send at the socket to an idle session, until it is answered: the message was handed over.
func BenchmarkSend(b *testing.B) {
	_, d, made := held(b)
	last := ""
	measure(b, func(int) {
		if last != "" {
			call[api.Execution](d, api.MethodWait, api.Wait{ID: last})
		}
	}, func(i int) {
		sent := call[api.Sent](d, api.MethodSessSend, api.Send{Operation: operation(), Session: made.ID, Text: fmt.Sprint("say ", i)})
		last = sent.Execution
	})
}

// BenchmarkSendBusy is a send to a busy session, which is answered once it is stored.
func BenchmarkSendBusy(b *testing.B) {
	s, d, made := held(b)
	call[api.Sent](d, api.MethodSessSend, api.Send{Operation: operation(), Session: made.ID, Text: "hold go"})
	measure(b, nil, func(i int) {
		call[api.Sent](d, api.MethodSessSend, api.Send{Operation: operation(), Session: made.ID, Text: fmt.Sprint("say ", i)})
	})
	if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSendBesideFlood is a send while another session's agent says 50,000 pieces a second, beside one while that is
// idle: round by round, so that both have the same machine. What the flood came to is told too.
func BenchmarkSendBesideFlood(b *testing.B) {
	const rate = 50_000
	s, d, made := held(b)
	other := d.open()
	var calm, wild []time.Duration
	events, lasted := uint64(0), time.Duration(0)
	for i := range b.N {
		calm = append(calm, s.sends(d, made.ID, i)...)
		flood := d.post(other.ID, fmt.Sprintf("flood %d %d", rate, rate))
		first, began := d.get(other.ID).LastSeq, time.Now()
		s.until("it floods", func() bool { return d.get(other.ID).LastSeq > first+rate/10 })
		wild = append(wild, s.sends(d, made.ID, i)...)
		events, lasted = events+d.get(other.ID).LastSeq-first, lasted+time.Since(began)
		d.wait(flood.Execution)
	}
	slices.Sort(calm)
	slices.Sort(wild)
	b.ReportMetric(inMs(calm[len(calm)/2]), "calm-ms")
	b.ReportMetric(inMs(wild[len(wild)/2]), "flood-ms")
	b.ReportMetric(inMs(wild[len(wild)/2]-calm[len(calm)/2]), "more-ms")
	b.ReportMetric(float64(events)/lasted.Seconds(), "events/s")
	b.ReportMetric(0, "ns/op")
}

// sends gives an idle session some messages, and tells what each took until it was answered.
func (s *stage) sends(d *driver, id string, round int) (took []time.Duration) {
	for n := range 5 {
		start := time.Now()
		sent := d.post(id, fmt.Sprint("say ", round, n))
		took = append(took, time.Since(start))
		d.wait(sent.Execution)
	}
	return took
}

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkSessions is what 20 sessions take of ours that have an agent's process each, a turn in it, and a client that holds
// them: proportional set sizes of a shim, and of the supervisor by session.
func BenchmarkSessions(b *testing.B) {
	const many = 20
	for range b.N {
		s, d := desk(b)
		d.open() // what a first one takes is not by session
		before := proportional(b, s.supervising(b).PID)
		for range many {
			d.send(d.open().ID, "say "+strings.Repeat("something ", 100))
		}
		shims := 0.0
		all := supervisor.Runtimes(s.records())
		for _, r := range all {
			shims += proportional(b, r.ShimPID) / float64(len(all))
		}
		grown := (proportional(b, s.supervising(b).PID) - before) / many
		b.ReportMetric(shims, "shim-MB")
		b.ReportMetric(grown, "supervisor-MB")
		b.ReportMetric(shims+grown, "session-MB")
		b.ReportMetric(0, "ns/op")
	}
}

// proportional is the proportional set size of a process, in megabytes.
func proportional(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Skip(err)
	}
	_, rest, _ := strings.Cut(string(data), "\nPss:")
	kB := 0
	_, _ = fmt.Sscan(rest, &kB)
	return float64(kB) / 1024
}
