package record

import (
	"errors"

	"github.com/pintle/pintle/state"
)

type Page struct {
	Tail          bool
	Before, After *uint64
	Limit, Bytes  int
}

var ErrPage = errors.New("page")

func History(*state.Dir, string, Page) (struct{}, error) { return struct{}{}, ErrPage }
