//go:build agents

package agents

import "testing"

func TestGemini_Fake(t *testing.T) { converses(t, "gemini", "the script says 400") }
