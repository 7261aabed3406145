package testscripts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/rpc/api"
)

// held is a stage with a client that holds a session of the stand-in.
func held(b *testing.B) (*stage, *driver, api.Session) {
	b.Helper()
	s := benchStage(b)
	s.t, s.work = b, filepath.Join(s.dir, "w")
	bin := filepath.Join(s.dir, "bin")
	codex := "#!/bin/sh\nexec " + filepath.Join(filepath.Dir(binary), "standin") + "\n"
	if err := errors.Join(os.Mkdir(s.work, 0o700), os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "codex"), []byte(codex), 0o700)); err != nil {
		b.Fatal(err)
	}
	s.serving()
	d := s.join("bench")
	return s, d, d.open()
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
