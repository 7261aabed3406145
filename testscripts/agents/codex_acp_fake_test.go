//go:build agents

package agents

import (
	"cmp"
	"testing"
)

func TestCodexACP_Fake(t *testing.T) { converses(t, "codex-acp", "the script says 400") }

// codexACPClient knows how codex-acp tells of a model's refusal: as something said that is in no message, in a turn that ends as if all
// were well.
type codexACPClient struct{ converser }

func meetCodexACP(l *agentLab, p *peer) converser { return codexACPClient{meetACP(l, p)} }

func (c codexACPClient) turn(prompt string) outcome {
	o := c.converser.turn(prompt)
	o.failure = cmp.Or(o.failure, o.beside)
	return o
}
