package journal

import "errors"

var (
	// ErrDamaged marks a line whose checksum does not hold. Readers go on behind it; the writer sets a
	// copy of the segment aside.
	ErrDamaged = errors.New("journal line is damaged")
	// ErrClosed is returned by a Writer after Close.
	ErrClosed = errors.New("journal is closed")
)
