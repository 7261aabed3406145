package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/pintle/pintle/rpc/api"
)

// What follows a hello comes right behind its answer, whatever the peer has asked for in the same breath.
func TestC7_WhatFollowsTheHelloComesBeforeAnyOtherAnswer(t *testing.T) {
	p := raw(t, &Server{Hello: time.Hour, Handler: HandlerFunc(func(_ context.Context, p *Peer, method string, _ json.RawMessage) (any, error) {
		if method != "hello" {
			return nil, p.Notify("later", nil)
		}
		p.Greet()
		return Then{Result: "welcome", Do: func() { _ = p.Notify("first", nil) }}, nil
	})})
	p.say(`{"jsonrpc":"2.0","id":1,"method":"hello"}` + "\n" + `{"jsonrpc":"2.0","method":"other"}` + "\n")
	if m := p.hear(); string(m.ID) != "1" || string(m.Result) != `"welcome"` {
		t.Errorf("heard %+v", m)
	}
	for _, method := range []string{"first", "later"} {
		if m := p.hear(); m.Method != method {
			t.Errorf("heard %+v, want %s", m, method)
		}
	}
}

// A dismissed peer hears of each request that it waits for, once, whatever their handlers say then (C15).
func TestC15_DismissedRequestsAreAnsweredOnce(t *testing.T) {
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	s := &Server{Handler: HandlerFunc(func(ctx context.Context, p *Peer, method string, _ json.RawMessage) (any, error) {
		if method == "wait" {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return "never heard", nil
		}
		p.Dismiss(ctx, api.E(api.CodeClientGone, "goodbye"))
		<-ended
		<-ended
		return "done", nil
	})}
	conn, served := serve(t, s)
	p := &rawPeer{t, conn, bufio.NewReader(conn)}
	p.say(`{"jsonrpc":"2.0","id":1,"method":"wait"}`+"\n", `{"jsonrpc":"2.0","id":2,"method":"wait"}`+"\n")
	<-began
	<-began
	p.say(`{"jsonrpc":"2.0","id":3,"method":"goodbye"}` + "\n")
	answers := map[string]wire{}
	for range 3 {
		m := p.hear()
		answers[string(m.ID)] = m
	}
	for _, id := range []string{"1", "2"} {
		if e := answers[id].Error; e == nil || e.Data["code"] != string(api.CodeClientGone) {
			t.Errorf("request %s was answered %+v", id, answers[id])
		}
	}
	if got := answers["3"]; string(got.Result) != `"done"` {
		t.Errorf("the one that dismisses was answered %+v", got)
	}
	p.say(`{"jsonrpc":"2.0","id":4,"method":"wait"}` + "\n")
	conn.Close()
	if <-served; len(began) > 0 {
		t.Error("a dismissed peer's request was begun")
	}
}

// Who keeps peers is told once that one is gone, when nothing of it goes on any more.
func TestGoneComesAfterTheLastHandler(t *testing.T) {
	began, release, gone := make(chan struct{}), make(chan struct{}), make(chan *Peer, 2)
	var peer *Peer
	conn, served := serve(t, &Server{
		Handler: HandlerFunc(func(_ context.Context, p *Peer, _ string, _ json.RawMessage) (any, error) {
			peer = p
			close(began)
			<-release
			return nil, nil
		}),
		Gone: func(p *Peer) { gone <- p },
	})
	go func() { _ = NewClient(conn, nil).Notify(context.Background(), "a", nil) }()
	<-began
	conn.Close()
	select {
	case <-gone:
		t.Error("gone while a handler runs")
	default:
	}
	close(release)
	<-served
	if p := <-gone; p != peer || len(gone) > 0 {
		t.Errorf("gone: %p, want %p once", p, peer)
	}
}
