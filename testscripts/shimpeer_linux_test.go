package testscripts

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A shim says nothing to a peer of another user either (case 26).
func TestCase26_ShimsPeerOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	s := newStage(t, "")
	socket := s.serving()
	s.begin("k")
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(socket), "x-*"))
	if len(found) != 1 {
		t.Fatal(found)
	}
	chmod(t, 0o711, s.dir, s.home, filepath.Dir(socket))
	chmod(t, 0o666, found[0])
	theirs := dialAs(t, nobodyElse, found[0])
	_, _ = io.WriteString(theirs, `{"m":"hello","epoch":99}`+"\n"+`{"m":"env"}`+"\n")
	r := bufio.NewReader(theirs)
	for range 2 {
		line, _ := r.ReadString('\n')
		if line != "" {
			t.Errorf("another user was told %.200s (holds the secret: %v)", line, strings.Contains(line, secret))
		}
	}
	chmod(t, 0o600, found[0])
	chmod(t, 0o700, s.dir, s.home, filepath.Dir(socket))
}
