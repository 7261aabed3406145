//go:build agents

package agents

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reached is an address of the internet's in what strace writes: of IPv4 or IPv6.
var reached = regexp.MustCompile(`inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"`)

// The agents, as these tests set them up, reach for no other machine: what they connect or send to is this one.
func TestAgents_ReachForNothingElse(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	for _, name := range slices.Sorted(maps.Keys(setUps)) {
		t.Run(name, func(t *testing.T) {
			l := newAgentLab(t, name)
			log := filepath.Join(l.home, "reached")
			p := &peer{appServer: l.start(t, strace, "-f", "-qq", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-s", "200", "-o", log)}
			if got := setUps[name].meet(l, p).turn("shell: echo made"); got.failure != "" || got.tools != 1 {
				t.Errorf("%+v", got)
			}
			p.close()
			told := read(t, log)
			if !strings.Contains(told, `"127.0.0.1"`) {
				t.Error("not even the model was reached")
			}
			for line := range strings.Lines(told) {
				if found := reached.FindStringSubmatch(line); found != nil && !strings.HasPrefix(found[1], "127.") && found[2] != "::1" {
					t.Errorf("%.300s", line)
				}
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
