//go:build agents

package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pintle/pintle/internal/proc"
	protocol "github.com/pintle/pintle/providers/codex"
)

// A thread that is loaded is found by the lock that its server holds, by that process alone, until it is dead (case 32).
func TestCodex_LoadedThreadIsLocked(t *testing.T) {
	l, th := open(t, "gpt-5.5")
	self, err := proc.Identify(th.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	path := protocol.Provider().Writer(map[string]string{"CODEX_HOME": l.home}, th.id)
	locked := func(want ...proc.Identity) {
		t.Helper()
		if got, err := proc.LockHolders(path); err != nil || !cmp.Equal(want, got) {
			t.Errorf("held by %+v, %v; want %+v", got, err, want)
		}
	}
	locked(self)
	th.prompt("sleep 20")
	th.awaitItem("item/started", "commandExecution")
	locked(self)
	th.call("thread/unsubscribe", object{"threadId": th.id})
	locked(self)
	th.kill()
	locked()
}
