package supervisor

import (
	"context"
	"errors"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// hello makes a connection one of a client's (C5). What its client is on file is so before the answer goes out, and right
// behind that the connection is told of the supervisor (C7).
func (s *Supervisor) hello(ctx context.Context, p *rpc.Peer, h api.Hello) (any, error) {
	switch {
	case h.Protocol != api.ProtocolVersion:
		p.Close(rpc.CloseProtocol, "protocol version")
		return nil, api.E(api.CodeRequest, "protocol version %d is not spoken here, %d is", h.Protocol, api.ProtocolVersion)
	case !clientNamed(h.Client) || p.Greeted():
		p.Close(rpc.CloseHello, "one hello with a client id")
		return nil, api.E(api.CodeHello, "one hello with a client id is expected")
	}
	w, err := s.clients.join(ctx, p, h)
	if errors.Is(err, errToken) {
		p.Close(rpc.CloseToken, "the client is known, and its resume token is another one")
	}
	if err != nil {
		return nil, err
	}
	p.Greet()
	w.Protocol, w.Version, w.Server, w.Epoch = api.ProtocolVersion, s.o.Version, s.dir.HomeID(), s.self.Epoch
	return rpc.Then{Result: w, Do: func() {
		s.clients.welcomed(p, func() { _ = p.Notify(api.NotifyServer, s.server(w)) }) // who has gone meanwhile needs it no more
		s.join(p)
	}}, nil
}

// server is what a client is told of the supervisor.
func (s *Supervisor) server(w api.Welcome) api.Server {
	return api.Server{
		Protocol: w.Protocol, Version: w.Version, Server: w.Server, Epoch: w.Epoch, Resumed: w.Resumed,
		Capabilities: map[string]api.Capability{},
	}
}

// goodbye ends the client of a connection, without grace (C15): what it waits for, here and on its other connections, is
// answered, then what it held is freed, and then this connection is closed. Killed before that is on file the client has
// its grace.
func (s *Supervisor) goodbye(ctx context.Context, p *rpc.Peer) {
	peers, finish := s.clients.goodbye(p)
	why := api.E(api.CodeClientGone, "the client has said goodbye")
	for _, other := range peers {
		other.Dismiss(ctx, why)
		if other != p {
			other.Close(rpc.CloseGoing, "goodbye")
		}
	}
	finish()
	p.Close(rpc.CloseGoing, "goodbye")
}
