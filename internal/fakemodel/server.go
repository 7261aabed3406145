// Package fakemodel is a model server for tests: real agents talk to it over 127.0.0.1 as to a model, each
// prompt says what comes back (script.go has the words), and what was asked is counted from outside.
//
// The ids that it gives are unique over all servers and restarts, for a conversation that is resumed has those
// of an earlier one in its history. It keeps no conversation itself: whatever it answers follows from the
// request, and from how often the same one was made before. Each API has a file of its own, which knows the
// wire and not the script.
package fakemodel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// maxBody bounds a request. Agents send the whole conversation each time.
const maxBody = 256 << 20

// Options of a server. The zero value is good.
type Options struct {
	Address string // where to listen: a free port of 127.0.0.1 by default
	Log     string // a file to which each request is appended as a line of JSON
}

// Server is a model server.
type Server struct {
	url    string
	http   *http.Server
	cancel context.CancelFunc // ends what hangs
	prefix string
	ids    atomic.Int64
	diary  diary

	mu        sync.Mutex
	closed    bool
	answering sync.WaitGroup // grows under mu only while not closed
}

// New returns a server that closes with the test.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Open returns a server that listens. The caller closes it.
func Open(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	s := &Server{prefix: strings.ToLower(rand.Text()[:10])}
	if err := s.diary.open(o.Log); err != nil {
		return nil, fmt.Errorf("open the log of the fake model: %w", err)
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen as the fake model: %w", err), s.diary.close())
	}
	s.url = "http://" + l.Addr().String() + "/v1"
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.http = &http.Server{
		Handler:     s.routes(),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	go func() { _ = s.http.Serve(l) }() // ends by Close
	return s, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/responses", s.serve(decodeResponses))
	mux.HandleFunc("POST /v1/messages", s.serve(decodeMessages))
	mux.HandleFunc("POST /v1/chat/completions", s.serve(decodeChat))
	mux.HandleFunc("POST /v1beta/models/{action}", s.serve(decodeGemini))
	for _, probe := range probes { // what agents look at beside their work
		mux.HandleFunc(probe, func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.mistake(w, http.StatusNotFound, fmt.Sprintf("%s %s: there is no such endpoint", r.Method, r.URL.Path))
	})
	return mux
}

// probes are what agents ask for and can do without.
var probes = []string{"HEAD /{$}", "GET /{$}", "HEAD /api/hello", "GET /v1/models", "POST /v1/messages/count_tokens", "GET /v1beta/models"}

// URL is the base of the API, as agents want it.
func (s *Server) URL() string { return s.url }

// Close ends all that hangs or waits, and returns when nobody is being answered any more. It returns the
// first error of the log.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	_ = s.http.Close() // only ever the listener's, which is gone either way
	s.answering.Wait()
	return s.diary.close()
}

// enter reports whether the server is open, and has Close wait for leave if so.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.answering.Add(1)
	}
	return !s.closed
}

func (s *Server) leave() { s.answering.Done() }

// id returns a new id of the given kind.
func (s *Server) id(kind string) string {
	return kind + "_" + s.prefix + strconv.FormatInt(s.ids.Add(1), 10)
}

// A dialogue is a decoded request of some API.
type dialogue interface {
	question() question
	// play answers with a step.
	play(*answer, step)
	// refuse answers with an error of HTTP, whose type is kind.
	refuse(a *answer, status int, kind, message string)
}

// serve answers the requests of one API.
func (s *Server) serve(decode func(*http.Request, []byte) (dialogue, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.leave()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			s.mistake(w, http.StatusRequestEntityTooLarge, err.Error())
			return
		} else if err != nil {
			panic(http.ErrAbortHandler) // the client is gone: it asked nothing
		}
		d, err := decode(r, body)
		if err != nil {
			s.mistake(w, http.StatusBadRequest, err.Error())
			return
		}
		s.answer(w, r, d)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialogue) {
	q := d.question()
	a := &answer{ctx: r.Context(), w: w, flush: http.NewResponseController(w).Flush, id: s.id}
	if q.side {
		d.play(a, step{text: "aside"})
		return
	}
	sc, err := parse(q.prompt)
	if err != nil {
		s.diary.add(q, err.Error())
		defer s.diary.done()
		d.refuse(a, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	before := s.diary.add(q, "")
	defer s.diary.done()
	d.play(a, sc.next(before, q.outputs))
}

// mistake answers what should not have been asked.
func (s *Server) mistake(w http.ResponseWriter, status int, what string) {
	s.diary.add(question{}, what)
	defer s.diary.done()
	http.Error(w, what, status)
}
