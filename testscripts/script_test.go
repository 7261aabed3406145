// Package testscripts proves pintle's contract from outside: each .txtar file under testdata is one
// behaviour, played with the real binary, real processes and a state directory of its own.
package testscripts

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the pintle under test, built once, with the race detector if the tests are.
var binary string

func TestMain(m *testing.M) {
	// Whoever started us may ignore SIGHUP (nohup, a daemon), and children inherit that; what is caught is at
	// its default in them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pintle-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pintle")
	if err := depend(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := exec.Command("go", "build", "-o", binary, "../cmd/pintle")
	if raceEnabled {
		c.Args = slices.Insert(c.Args, 2, "-race")
	} else {
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // as `just build` does
	}
	out, err := c.CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build pintle: %v\n%s", err, out)
		return 1
	}
	standin := exec.Command("go", "build", "-o", filepath.Join(dir, "standin"), "./standin")
	if out, err := standin.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build standin: %v\n%s", err, out)
		return 1
	}
	together()
	return m.Run()
}

// together has more tests go on at once than there are processors, if nobody says how many: most of them wait, for
// processes to start and end, most of their time.
func together() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)+1))
	}
}

// depend has go test's cache know that a result depends on the sources of the binary: it notes the files that
// a test looks at.
func depend(root string) error {
	return filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{".go", ".ts"}, filepath.Ext(path)) {
			_, err = os.Stat(path)
		}
		return err
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		Setup:               setup,
		Cmds:                words,
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// setup gives a script a state directory with a short path, a home, and an environment in which nothing of
// the developer's is left. At its end nothing of it may live.
func setup(e *testscript.Env) error {
	base, err := os.MkdirTemp("", "pt-")
	if err != nil {
		return err
	}
	home := filepath.Join(base, "h")
	e.Vars = []string{
		"WORK=" + e.WorkDir, "HOME=" + e.WorkDir + "/home", "TMPDIR=" + e.WorkDir + "/tmp", "BASE=" + base,
		"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "PINTLE_HOME=" + home, "LANG=C.UTF-8",
		"GORACE=atexit_sleep_ms=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
	}
	for _, dir := range []string{"home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o700); err != nil {
			return err
		}
	}
	e.Defer(func() { cleanUp(e, base) })
	return nil
}
