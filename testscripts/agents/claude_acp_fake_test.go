//go:build agents

package agents

import "testing"

func TestClaudeACP_Fake(t *testing.T) { converses(t, "claude-acp", "the script says 400") }
