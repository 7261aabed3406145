package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Archived returns the executions whose keys were freed, as they ended, with the time of it; in no order. A key
// may be among them several times. An unreadable one does not hide the others.
func Archived(d *state.Dir) (rows []Listed, err error) {
	entries, err := os.ReadDir(d.Path("archived"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list archived: %w", err)
	}
	for _, entry := range entries {
		if at, ok := removedAt(entry.Name()); ok {
			e, err := archived(d, entry.Name(), at)
			rows = append(rows, Listed{entry.Name(), e, err})
		}
	}
	return rows, nil
}

// removedAt reads when a folder was put there from the name that Remove gave it.
func removedAt(name string) (time.Time, bool) {
	_, digits, ok := strings.Cut(name, ".removed-")
	nanoseconds, err := strconv.ParseInt(digits, 10, 64)
	return time.Unix(0, nanoseconds).UTC(), ok && err == nil
}

func archived(d *state.Dir, name string, at time.Time) (api.Execution, error) {
	st, err := state.Read[Status](d, "archived/"+name+"/status.json")
	if err != nil {
		return api.Execution{}, err
	}
	st.ArchivedAt = &at
	return st.Execution, nil
}
