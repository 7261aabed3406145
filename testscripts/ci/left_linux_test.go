package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A process is found by its environment, its working directory or its program, and no other one is.
func TestLeftoversFindsProcesses(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		tie  func(c *exec.Cmd, dir string)
		want bool
	}{
		{"environment", func(c *exec.Cmd, dir string) { c.Env = []string{"PINTLE_HOME=" + dir + "/h"} }, true},
		{"working directory", func(c *exec.Cmd, dir string) { c.Dir = dir }, true},
		{"program", func(c *exec.Cmd, dir string) {
			c.Path = filepath.Join(dir, "sleep")
			if err := os.WriteFile(c.Path, program, 0o700); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"neighbour", func(c *exec.Cmd, dir string) { c.Env = []string{"PINTLE_HOME=" + dir + "-2/h"} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			c := exec.Command(sleep, "60")
			tt.tie(c, dir)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
			found := strings.Join(processesOf(dir), "\n")
			if got := strings.Contains(found, "process "+strconv.Itoa(c.Process.Pid)+" "); got != tt.want {
				t.Errorf("found %t, want %t:\n%s", got, tt.want, found)
			}
		})
	}
}

// What ends by itself within the grace time is no leftover.
func TestLeftoversWaitsForTheEnding(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command("sleep", "0.2")
	c.Env = []string{"PINTLE_HOME=" + dir}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if left, err := leftovers(dir, time.Minute); err != nil || len(left) > 0 {
		t.Errorf("leftovers = %q, %v", left, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLeftoversListsFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pt-1", "h"), 0o700); err != nil {
		t.Fatal(err)
	}
	left, err := leftovers(dir, 0)
	if err != nil || len(left) != 2 || !strings.HasSuffix(left[1], "/pt-1/h") {
		t.Errorf("leftovers = %q, %v; want the two directories", left, err)
	}
	for i := range 60 {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if left, err = leftovers(dir, 0); err != nil || len(left) != 51 {
		t.Errorf("%d leftovers, %v; want 50 and a word that there are more", len(left), err)
	}
}
