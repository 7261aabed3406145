//go:build agents

package agents

import "testing"

func TestCodexACP_Fake(t *testing.T) { converses(t, "codex-acp", "the script says 400") }

// codexACPClient knows how codex-acp tells of a model's refusal: as something said, in a turn that ends as if all were well but has
// used nothing.
type codexACPClient struct{ converser }

func meetCodexACP(l *agentLab, p *peer) converser { return codexACPClient{meetACP(l, p)} }

func (c codexACPClient) turn(prompt string) outcome {
	o := c.converser.turn(prompt)
	if !o.used {
		o.failure = o.text
	}
	return o
}
