package state

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/pintle/pintle/internal/crash"
)

// role makes this test binary play another process on the same directory.
const role = "STATE_TEST_ROLE"

var roles = map[string]func(dir, arg string) error{"count": count, "replace": replace, "hold": hold}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(role)]; play != nil {
		if err := play(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type counter struct {
	Version int    `json:"version"`
	N       int    `json:"n"`
	Text    string `json:"text,omitempty"`
}

func increment(c *counter) error {
	c.Version, c.N = 1, c.N+1
	return nil
}

func count(dir, arg string) error {
	times, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	d, err := Open(context.Background(), dir)
	for range times {
		if err == nil {
			err = Update(context.Background(), d, "counter.json", increment)
		}
	}
	return err
}

func replace(dir, text string) error {
	d, err := OpenExisting(dir)
	if err != nil {
		return err
	}
	return Update(context.Background(), d, "counter.json", func(c *counter) error {
		*c = counter{Version: 1, N: 2, Text: text}
		return nil
	})
}

// hold takes a lock, says so and keeps it until its input ends or it is killed.
func hold(dir, name string) error {
	d, err := OpenExisting(dir)
	if err != nil {
		return err
	}
	unlock, err := d.Lock(context.Background(), name)
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

// play returns the command that plays a role; armed is what PINTLE_CRASH holds.
func play(t testing.TB, as, dir, arg, armed string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", dir, arg)
	c.Env = append(os.Environ(), role+"="+as, crash.Variable+"="+armed)
	c.Stderr = &bytes.Buffer{}
	return c
}

func open(t testing.TB) *Dir {
	t.Helper()
	d, err := Open(t.Context(), t.TempDir()+"/home")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
