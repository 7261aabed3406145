package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Occupant is a process that works in a directory.
type Occupant struct {
	PID     int
	Command string // its arguments, at most 200 bytes, control characters escaped
}

// WithCwd returns the processes whose working directory is dir or below it, without those that spare accepts. The kernel
// names a working directory by its path as it is now, so dir must be without symbolic links; one that was removed is below
// nothing. Processes of other users, which only root may look at, are not found by others.
func WithCwd(dir string, spare func(pid int) bool) ([]Occupant, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	var found []Occupant
	for _, pid := range all {
		cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
		if err != nil || !below(dir, cwd) || spare != nil && spare(pid) {
			continue
		}
		if st, err := Read(pid); err == nil && !st.dead() {
			found = append(found, Occupant{pid, commandOf(pid)})
		}
	}
	return found, nil
}

func below(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// commandOf is a process's arguments for a message.
func commandOf(pid int) string {
	text := strconv.Quote(strings.Join(argsOrNone(pid), " "))
	text = text[1 : len(text)-1]
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
