package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/state"
)

// Archived returns the executions in archived/, in no order: those that were archived, and those whose keys were freed,
// as they ended and with the time of it. A key may be among them several times. An unreadable one does not hide the others.
func Archived(d *state.Dir) (rows []Listed, err error) {
	entries, err := os.ReadDir(d.Path(archivedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list archived: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		folder := inArchive(entry.Name())
		e, err := View(d, folder)
		if at, ok := removedAt(entry.Name()); ok && err == nil {
			e.ArchivedAt = &at
		}
		if e.Controller != Chores {
			rows = append(rows, Listed{folder, e, err})
		}
	}
	return rows, nil
}

// removedAt reads when a key was freed from the name that Remove gave its folder.
func removedAt(name string) (time.Time, bool) {
	_, digits, ok := strings.Cut(name, ".removed-")
	nanoseconds, err := strconv.ParseInt(digits, 10, 64)
	return time.Unix(0, nanoseconds).UTC(), ok && err == nil
}
