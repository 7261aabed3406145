package state

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"testing"
)

func TestLock_WaitEndsWithItsContext(t *testing.T) {
	d := open(t)
	unlock, err := d.Lock(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := d.Lock(ctx, "x")
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	unlock()
	again, err := d.Lock(t.Context(), "x")
	if err != nil {
		t.Fatalf("after a cancelled wait: %v", err)
	}
	again()
}

func TestLock_OfAnotherProcess(t *testing.T) {
	d := open(t)
	c := play(t, "hold", d.Path(), "x", "")
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v: %s", line, err, c.Stderr)
	}
	if _, err := TryLock(d.Path("locks", "x")); !errors.Is(err, ErrLocked) {
		t.Errorf("try: %v, want ErrLocked", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := d.Lock(ctx, "x")
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("lock: %v, want canceled", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context(), "x") // waits for the kernel to let go
	if err != nil {
		t.Fatalf("after its holder was killed: %v", err)
	}
	unlock()
	_ = c.Wait()
}

func TestTryLock_SaysWhoHoldsAndWhatIsAbsent(t *testing.T) {
	path := t.TempDir() + "/lock"
	unlock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
	unlock()
	again, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if _, err := TryLock(path + "/none/lock"); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("below a file: %v", err)
	}
	if _, err := TryLock(t.TempDir() + "/none/lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v, want fs.ErrNotExist", err)
	}
}
