package proc

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Occupant is a process that works in a directory.
type Occupant struct {
	PID     int
	Command string // for people: its arguments in one line, cut
}

// maxCommand bounds a command line that is shown, in bytes.
const maxCommand = 200

// commandLine makes one printable line of arguments. A process may write into them what it likes, so what would
// move a terminal's cursor is escaped. The kernel's name stands for one that shows none.
func commandLine(args []string, comm string) string {
	line := strings.TrimSpace(strings.Join(args, " "))
	if line == "" {
		line = "[" + comm + "]"
	}
	var b strings.Builder
	for _, r := range line {
		shown := string(r)
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			shown = strings.Trim(strconv.QuoteToASCII(shown), `"`)
		}
		if b.Len()+len(shown) > maxCommand {
			break
		}
		b.WriteString(shown)
	}
	return b.String()
}
