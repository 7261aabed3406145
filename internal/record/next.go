package record

import (
	"fmt"

	"github.com/pintle/pintle/rpc/api"
)

// Next is what helps a run that waits, or, if it goes on by itself, the command that sees to that.
func Next(id string, w *api.WaitingFor) string {
	switch w.Kind {
	case "uncertain":
		return "pintle recover " + Quote(id) + " --probe"
	case "needs_approval":
		if len(w.Names) == 1 {
			return fmt.Sprintf("pintle allow %s, or pintle deny %s", w.Names[0], w.Names[0])
		}
		return "pintle approvals"
	case "session":
		return "pintle wait " + Quote(w.Names[0])
	case string(api.CodeCrashLooping):
		return "pintle recover " + Quote(w.Names[0])
	case "needs_env":
		return fmt.Sprintf("repeat the pintle run or send that ordered it, with %v set; or send its session another message so", w.Names)
	}
	return "pintle wait " + Quote(id)
}
