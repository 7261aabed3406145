//go:build agents

package agents

import (
	"slices"
	"testing"

	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/providers/acp"
	"github.com/pintle/pintle/providers/claude"
	"github.com/pintle/pintle/providers/pi"
)

// byHand is an agent that is spoken to by hand, in a lab of its own.
func byHand(b *testing.B, name string) (*peer, converser) {
	b.Helper()
	l := newAgentLab(b, name)
	p := &peer{appServer: l.start(b)}
	return p, setUps[name].meet(l, p)
}

// greets has a turn, in which the greeting is answered.
func greets(b *testing.B, c converser) {
	b.Helper()
	if o := c.turn(greeting); o.failure != "" || o.text != "hello" {
		b.Fatalf("%+v", o)
	}
}

// BenchmarkGuestOneShot is one prompt to an agent other than Codex, with a supervisor that is there: as its own program takes
// one (Claude Code's), by hand from the process's start to its end, and with pintle.
func BenchmarkGuestOneShot(b *testing.B) {
	for _, g := range guests {
		b.Run(g.agent, func(b *testing.B) {
			h, pintle := g.house(b), ours(b)
			h.must(pintle, "run", "-a", g.agent, greeting)
			all := []contest{{"hand", nil, func() {
				p, c := byHand(b, g.agent)
				greets(b, c)
				p.close()
			}}}
			if g.agent == "claude" {
				all = slices.Insert(all, 0, contest{"bare", nil, func() { h.must(h.binary, "-p", greeting) }})
			}
			compete(b, append(all, contest{"pintle", h.settled, func() { h.must(pintle, "run", "-a", g.agent, greeting) }})...)
		})
	}
}

// BenchmarkGuestWarmTurn is one more turn of a process that is there: by hand, at our socket and from the shell.
func BenchmarkGuestWarmTurn(b *testing.B) {
	drivers := map[string]providers.Provider{"claude": claude.Provider(), "pi": pi.Provider()}
	for _, p := range acp.Providers() {
		drivers[p.Name] = p
	}
	for _, g := range guests {
		b.Run(g.agent, func(b *testing.B) {
			h, pintle := g.house(b), ours(b)
			_, bare := byHand(b, g.agent)
			greets(b, bare)
			h.must(pintle, warm("run", "--id", "socket", "-a", g.agent)...)
			h.must(pintle, warm("run", "--id", "shell", "-a", g.agent)...)
			h.must(pintle, warm("send", "socket", "--id", "model")...)
			c := h.dial("model", drivers[g.agent].Environment)
			defer c.Close()
			compete(b,
				contest{"bare", nil, func() { greets(b, bare) }},
				contest{"socket", nil, c.turn},
				contest{"shell", nil, func() { h.must(pintle, warm("send", "shell")...) }})
		})
	}
}
