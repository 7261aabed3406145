//go:build agents

package agents

import "testing"

func TestOpenCode_Fake(t *testing.T) { converses(t, "opencode", "the script says 400") }
