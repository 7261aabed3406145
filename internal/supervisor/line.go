package supervisor

import (
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/shim"
)

// line is what a runtime has of its shim: the shim's own connection, or, where sessions share a process, a seat in the hub
// that has it. It has all of a connection's methods, since one stands in for the other.
type line interface {
	Events() <-chan shim.Event
	Write(op string, after int64, data []byte) error
	End() error
	Signal(syscall.Signal) error
	Ack(out, err int64) error
	Environment(limit <-chan time.Time) ([]string, error)
	Deadline(at time.Duration) error
	Close()
}
