package rpc

import (
	"io"

	"github.com/pintle/pintle/rpc/api"
)

// frame takes a binary frame, or refuses it (C13).
func (p *Peer) frame(r io.Reader, size int64) error {
	if !p.Greeted() {
		return &malformed{closing: CloseHello, why: api.E(api.CodeHello, "hello expected")}
	}
	if p.srv.OnFrame == nil || size > MaxFrame {
		if err := discard(r, size); err != nil {
			return err
		}
		return p.refuseFrame(api.E(api.CodeRequest, "a binary frame of %d bytes is not taken here", size))
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(r, frame); err != nil {
		return err
	}
	if err := p.srv.OnFrame(p, frame); err != nil {
		return p.refuseFrame(err)
	}
	return nil
}

func (p *Peer) refuseFrame(err error) error {
	e := api.As(err)
	return p.Send(NotifyFrame, struct {
		Code    api.Code `json:"code"`
		Message string   `json:"message"`
	}{e.Code, e.Message})
}

// discard reads a binary frame away; one so long that nobody can have meant it ends the connection.
func discard(r io.Reader, size int64) error {
	if size > MaxSkip {
		return &malformed{closing: CloseTooLarge, why: api.E(api.CodeRequest, "binary frame of %d bytes", size)}
	}
	_, err := io.CopyN(io.Discard, r, size)
	return err
}
