package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

var errStat = errors.New("malformed process status")

// ParseStat parses /proc/<pid>/stat (proc(5)). The command's name may hold blanks, parentheses and
// newlines, so the fields are counted from the last closing parenthesis.
func ParseStat(b []byte) (Stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Stat{}, errStat
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	fields := bytes.Fields(b[end+1:])
	if err != nil || len(fields) < 20 || len(fields[0]) != 1 {
		return Stat{}, errStat
	}
	st := Stat{PID: pid, Comm: string(b[open+1 : end]), State: fields[0][0]}
	for i, to := range []*int{&st.PPID, &st.PGID, &st.SID} {
		if *to, err = strconv.Atoi(string(fields[1+i])); err != nil {
			return Stat{}, fmt.Errorf("%w: %w", errStat, err)
		}
	}
	if st.Threads, err = strconv.Atoi(string(fields[17])); err != nil { // field 20 of the line
		return Stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	st.StartTicks, err = strconv.ParseUint(string(fields[19]), 10, 64) // field 22 of the line
	if err != nil {
		return Stat{}, fmt.Errorf("%w: %w", errStat, err)
	}
	return st, nil
}
