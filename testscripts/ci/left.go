package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// leftovers are the processes and files that still belong to dir, a directory that was the TMPDIR of all
// that ran. Processes get a moment to be gone, files none.
func leftovers(dir string, grace time.Duration) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	processes := processesOf(dir)
	for until := time.Now().Add(grace); len(processes) > 0 && time.Now().Before(until); processes = processesOf(dir) {
		time.Sleep(50 * time.Millisecond)
	}
	files, err := filesIn(dir)
	return append(processes, files...), err
}

// processesOf are the processes whose environment names dir (PINTLE_HOME, TMPDIR or any other), or whose
// program or working directory lies in it. A zombie has none of these and is not one of them. A system
// without /proc shows none.
func processesOf(dir string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		proc := filepath.Join("/proc", entry.Name())
		if why := tie(proc, dir); why != "" {
			cmdline, _ := os.ReadFile(proc + "/cmdline")
			command := strings.TrimRight(strings.ReplaceAll(string(cmdline), "\x00", " "), " ")
			found = append(found, fmt.Sprintf("process %d (%.200s) by its %s", pid, command, why))
		}
	}
	return found
}

// tie is what binds the process to dir: "" if nothing does. What cannot be read (it ended just now, or is
// another user's) binds nothing.
func tie(proc, dir string) string {
	environ, _ := os.ReadFile(proc + "/environ")
	for pair := range bytes.SplitSeq(environ, []byte{0}) {
		if key, value, _ := strings.Cut(string(pair), "="); within(value, dir) {
			return key + "=" + value
		}
	}
	for _, link := range []string{"exe", "cwd"} {
		if to, _ := os.Readlink(proc + "/" + link); within(to, dir) {
			return link + " " + to
		}
	}
	return ""
}

// within reports whether path is dir or lies in it; a link of /proc to what was deleted counts too.
func within(path, dir string) bool {
	path = strings.TrimSuffix(path, " (deleted)")
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// filesIn lists what lies in dir, directories and their contents both: where a test forgot a directory, its
// contents say which test it was. Past fifty it is no list for reading any more.
func filesIn(dir string) (found []string, err error) {
	const enough = 50
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if len(found) == enough {
			found = append(found, "and more")
			return fs.SkipAll
		}
		found = append(found, "file "+path)
		return nil
	})
	return found, err
}
