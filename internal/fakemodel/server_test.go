package fakemodel

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// goes fails the test if cond does not come to hold.
func goes(t *testing.T, s *Server, cond func(requests []Request, answering int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Wait(ctx, cond); err != nil {
		t.Fatalf("%v: %+v", err, s.Requests())
	}
}

// begin posts a prompt in the background and returns what ends it from the client's side, and its end.
func begin(t *testing.T, s *Server, prompt string) (cancel func(), end <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"stream":true,"tools":[{}],"input":[` + user(prompt) + `]}`
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL()+"/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, reply.Body)
			reply.Body.Close()
		}
		c <- err
	}()
	return cancel, c
}

// endless are prompts whose answers do not end by themselves.
var endless = []string{"hang-headers", "hang-body", "slow: 9 1000000", "hang-thought: a b", "hang-text: a b", "hang-late: a b"}

func TestServer_ClosingEndsWhatHangs(t *testing.T) {
	for _, prompt := range endless {
		s := New(t, Options{})
		_, end := begin(t, s, prompt)
		goes(t, s, func(_ []Request, answering int) bool { return answering == 1 })
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-end; err == nil {
			t.Errorf("%q: the client does not see that it was cut", prompt)
		}
		if _, answering, _ := s.diary.look(); answering != 0 {
			t.Errorf("%q: %d are being answered by a closed server", prompt, answering)
		}
	}
}

func TestServer_ClientGoneEndsWhatHangs(t *testing.T) {
	s := New(t, Options{})
	for i, prompt := range endless {
		cancel, end := begin(t, s, prompt)
		goes(t, s, func(requests []Request, answering int) bool { return len(requests) == i+1 && answering == 1 })
		cancel()
		<-end
		goes(t, s, func(_ []Request, answering int) bool { return answering == 0 })
	}
}

func TestServer_WaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(t, Options{}).Wait(ctx, func([]Request, int) bool { return false }); err == nil {
		t.Error("it does not")
	}
}

func TestServer_Mistakes(t *testing.T) {
	s := New(t, Options{})
	post := func(body string) int {
		reply, err := http.Post(s.URL()+"/responses", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		return reply.StatusCode
	}
	reply, err := http.Get(s.URL() + "/model")
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != 404 || post("{") != 400 || post(`{"input":[]}`) != 400 {
		t.Errorf("%d", reply.StatusCode)
	}
	found := s.Mistakes()
	if len(found) != 3 || found[0] != "GET /v1/model: there is no such endpoint" {
		t.Errorf("%q", found)
	}
}

func TestServer_LogsRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var want []Request
	for range 2 { // a second server goes on in the same file
		s := New(t, Options{Log: path})
		whole(t, ask(t, s, "t1", user("<environment_context>"), user("shell: ls")))
		whole(t, ask(t, s, "t1", user("<environment_context>"), user("shell: ls"), output("made")))
		want = append(want, s.Requests()...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []Request
	for line := range bytes.Lines(raw) {
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, r)
	}
	if diff := cmp.Diff(want, got); diff != "" { // cmp compares instants
		t.Errorf("(-in memory +in the file)\n%s", diff)
	}
	first, second := got[0], got[1]
	if first.Thread != "t1" || first.Prompt != "shell: ls" || first.Model != "m" || first.FollowUp || first.Time.IsZero() ||
		!slices.Equal(first.Earlier, []string{"<environment_context>"}) {
		t.Errorf("%+v", first)
	}
	if !second.FollowUp || second.Output != "made" || second.Prompt != "shell: ls" || second.Retry {
		t.Errorf("%+v", second)
	}
}

func TestServer_LogThatCannotBeWritten(t *testing.T) {
	if _, err := Open(Options{Log: t.TempDir()}); err == nil {
		t.Error("a directory was opened as a log")
	}
	s, err := Open(Options{Log: filepath.Join(t.TempDir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	s.diary.file.Close()
	whole(t, ask(t, s, "", user("hi")))
	if err := s.Close(); err == nil {
		t.Error("the log could not be written and nobody is told")
	}
}

func TestServer_IdsAreNeverGivenTwice(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		s := New(t, Options{})
		for range 3 {
			all := whole(t, ask(t, s, "", user("shell: ls")))
			for _, id := range []string{all[0].Response.ID, all[1].Item.ID, all[1].Item.CallID} {
				if seen[id] {
					t.Errorf("%s comes twice", id)
				}
				seen[id] = true
			}
		}
	}
}

func TestServer_ListensWhereAnEarlierOneDid(t *testing.T) {
	s := New(t, Options{})
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/v1")
	if _, err := Open(Options{Address: address}); err == nil {
		t.Error("two servers on one port")
	}
	whole(t, ask(t, s, "", user("hi")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := New(t, Options{Address: address})
	if again.URL() != s.URL() {
		t.Errorf("%s, then %s", s.URL(), again.URL())
	}
	whole(t, ask(t, again, "", user("hi")))
}
