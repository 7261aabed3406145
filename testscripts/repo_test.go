package testscripts

import (
	"os"
	"os/exec"

	"github.com/rogpeppe/go-internal/testscript"
)

// repo DIR [MESSAGE]: commits all that is in a directory to its repository, which is made if there is none. Nobody's name
// and configuration are needed for it.
func repo(ts *testscript.TestScript, _ bool, args []string) {
	git := func(words ...string) {
		c := exec.Command("git", append([]string{"-C", ts.MkAbs(args[0]), "-c", "user.name=A", "-c", "user.email=a@example.org"}, words...)...)
		c.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
		if out, err := c.CombinedOutput(); err != nil {
			ts.Fatalf("git %v: %v\n%s", words, err, out)
		}
	}
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o700))
	message := "one"
	if len(args) > 1 {
		message = args[1]
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "--allow-empty", "-m", message)
}
