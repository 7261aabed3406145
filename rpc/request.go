package rpc

import (
	"context"
	"encoding/json"
	"maps"
	"runtime/debug"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// Handle is the library's handler. It is called in the goroutine that reads, in order; ctx ends with the
// connection.
func (p *Peer) Handle(ctx context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Method == MethodCancel {
		p.abandon(r)
		return
	}
	if !p.slot(ctx) {
		return
	}
	ctx, ok := p.begin(ctx, r)
	switch {
	case !ok:
		<-p.slots
	case p.srv.Hello > 0 && !p.Greeted():
		p.carryOut(ctx, r)
	default:
		go p.carryOut(ctx, r)
	}
}

// slot waits until a request may begin. Nobody reads meanwhile, so nobody would see the peer leave: look.
func (p *Peer) slot(ctx context.Context) bool {
	select {
	case p.slots <- struct{}{}:
		return true
	default:
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case p.slots <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-look.C:
			if hungUp(p.conn) {
				p.stream.out.end()
			}
		}
	}
}

// begin notes a request as being in flight, so that it can be cancelled by its id. Two under one id could
// not be told apart.
func (p *Peer) begin(ctx context.Context, r *jsonrpc2.Request) (context.Context, bool) {
	p.mu.Lock()
	_, twice := p.cancel[r.ID]
	twice = twice && !r.Notif
	if p.ended || twice {
		p.mu.Unlock()
		if twice {
			p.reply(r, nil, toWire(api.E(api.CodeRequest, "a request with the id %s is in flight", r.ID)))
		}
		return nil, false
	}
	defer p.mu.Unlock()
	p.calls.Add(1)
	if r.Notif {
		return ctx, true
	}
	f := &inFlight{}
	ctx, f.cancel = context.WithCancel(context.WithValue(ctx, asked{}, f))
	p.cancel[r.ID] = f
	return ctx, true
}

// inFlight is a request that has had no answer.
type inFlight struct{ cancel context.CancelFunc }

// asked is the key of the request in a handler's context.
type asked struct{}

// Dismiss answers all requests in flight with why, but for the one that ctx is of, ends their contexts, and has none
// begin any more: what their handlers still say goes nowhere. It does not wait for the peer: who does not read will
// not hear of it. The caller closes the peer.
func (p *Peer) Dismiss(ctx context.Context, why error) {
	p.mu.Lock()
	p.ended = true
	pending := maps.Clone(p.cancel)
	maps.DeleteFunc(pending, func(_ jsonrpc2.ID, f *inFlight) bool { return f == ctx.Value(asked{}) })
	maps.DeleteFunc(p.cancel, func(id jsonrpc2.ID, _ *inFlight) bool { return pending[id] != nil })
	p.mu.Unlock()
	for id, f := range pending {
		if line, err := encode(answer{ID: id, Error: toWire(why)}); err == nil {
			_ = p.stream.out.enqueue(line)
		}
		f.cancel()
	}
}

// finish waits for all handlers and for the queue's writer.
func (p *Peer) finish() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.calls.Wait()
	p.stream.out.work.Wait()
}

// abandon cancels the request that r names. One that is no longer in flight has had its answer.
func (p *Peer) abandon(r *jsonrpc2.Request) {
	var params struct {
		ID jsonrpc2.ID `json:"id"`
	}
	if r.Params != nil && json.Unmarshal(*r.Params, &params) == nil {
		p.mu.Lock()
		if f, ok := p.cancel[params.ID]; ok {
			f.cancel()
		}
		p.mu.Unlock()
	}
	if !r.Notif {
		p.reply(r, nil, nil)
	}
}

func (p *Peer) carryOut(ctx context.Context, r *jsonrpc2.Request) {
	defer func() { <-p.slots; p.calls.Done() }()
	result, err := p.call(ctx, r)
	var refusal *jsonrpc2.Error
	if err != nil {
		refusal = refusalOf(ctx, err)
	}
	then, followed := result.(Then)
	if followed {
		result = then.Result
	}
	if p.forget(r) { // before the answer: the peer may use the id again once it has it
		p.reply(r, result, refusal)
	}
	if followed && err == nil {
		then.Do()
	}
}

// forget reports whether the request is still to be answered.
func (p *Peer) forget(r *jsonrpc2.Request) bool {
	if r.Notif {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.cancel[r.ID]
	if ok {
		f.cancel()
		delete(p.cancel, r.ID)
	}
	return ok
}

// call is the handler's call. A panic in it is an error of that request alone; what it was is ours to know.
func (p *Peer) call(ctx context.Context, r *jsonrpc2.Request) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.srv.logf("panic in %s: %v\n%s", r.Method, v, debug.Stack())
			err = api.E(api.CodeInternal, "panic in %s: %v", r.Method, v)
		}
	}()
	params := json.RawMessage("{}")
	if r.Params != nil && string(*r.Params) != "null" {
		params = *r.Params
	}
	return p.srv.Handler.Handle(ctx, p, r.Method, params)
}

// reply answers a request. An answer that cannot be written as one becomes an error, so that nobody waits
// for it in vain. A connection that ended is seen by the one who reads.
func (p *Peer) reply(r *jsonrpc2.Request, result any, refusal *jsonrpc2.Error) {
	a := answer{ID: r.ID, Error: refusal}
	var err error
	if refusal == nil {
		a.Result, err = json.Marshal(result)
	}
	var line []byte
	if err == nil {
		line, err = encode(a)
	}
	if err != nil {
		wrong := toWire(api.E(api.CodeInternal, "answer to %s: %w", r.Method, err))
		if line, err = encode(answer{ID: r.ID, Error: wrong}); err != nil {
			p.srv.logf("answer to %s: %v", r.Method, err)
			p.stream.out.end()
			return
		}
	}
	_ = p.stream.out.write(line)
}
