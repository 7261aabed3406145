package worktree

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"
)

// The manifest is what a tree of git cannot say: which of its files were read from the disk and with what permissions,
// which were deleted, and which
// directories were empty, or had other permissions than git gives, or files had. It is JSON lines, the header first.

// header says what was archived.
type header struct {
	Version int    `json:"version"`
	Head    string `json:"head,omitempty"`
	Branch  string `json:"branch,omitempty"`
	Admin   string `json:"admin"` // base name of the worktree's git directory
}

const manifestVersion = 1

// kinds of a piece.
const (
	pieceFile = "file"
	pieceLink = "link"
	pieceGone = "gone"
	pieceDir  = "dir"  // with its permissions
	pieceMode = "mode" // a file as git checks it out, with other permissions
)

// piece is one path of the working tree that is not as git would check it out.
type piece struct {
	Path string      `json:"path,omitempty"`
	Raw  []byte      `json:"raw,omitempty"` // the path where it is not UTF-8, which JSON cannot hold
	Kind string      `json:"kind"`
	Mode fs.FileMode `json:"mode,omitempty"` // permissions
	mark int
	oid  string // instead of a mark
	mode string // git's, with oid
}

func newPiece(path, kind string, mode fs.FileMode) piece {
	p := piece{Path: path, Kind: kind, Mode: mode.Perm()}
	if !utf8.ValidString(path) {
		p.Path, p.Raw = "", []byte(path)
	}
	return p
}

func (p piece) path() string {
	if p.Raw != nil {
		return string(p.Raw)
	}
	return p.Path
}

// gitMode is what git calls the piece.
func (p piece) gitMode() string {
	switch {
	case p.mode != "":
		return p.mode
	case p.Kind == pieceLink:
		return symlink
	case p.Mode&0o100 != 0:
		return program
	}
	return regular
}

func writeManifest(h header, pieces []piece) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	err := enc.Encode(h)
	for _, p := range pieces {
		if p.oid == "" { // what is only in git's tree was not on the disk
			err = errors.Join(err, enc.Encode(p))
		}
	}
	return b.Bytes(), err
}

func readManifest(r io.Reader) (h header, pieces []piece, err error) {
	dec := json.NewDecoder(bufio.NewReader(r))
	if err := dec.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("read the manifest: %w", err)
	}
	if h.Version != manifestVersion {
		return h, nil, fmt.Errorf("read the manifest: version %d is not known", h.Version)
	}
	for {
		var p piece
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return h, pieces, nil
		}
		if err != nil {
			return h, nil, fmt.Errorf("read the manifest: %w", err)
		}
		pieces = append(pieces, p)
	}
}
