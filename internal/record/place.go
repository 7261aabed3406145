package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
)

// An execution's records lie in executions/<hash of controller and key>, or, once it is archived, in archived/ under
// the same name, so that listing what is there costs nothing for what is not. Its folder, which functions here take, is
// the hash, or "archived/" and the hash.

const archivedDir = "archived"

// dirOf is the directory of a folder, relative to the state directory.
func dirOf(folder string) string {
	if IsArchived(folder) {
		return folder
	}
	return "executions/" + folder
}

// IsArchived reports whether a folder is that of an archived execution.
func IsArchived(folder string) bool { return strings.HasPrefix(folder, archivedDir+"/") }

// hashOf is the folder's name, wherever it lies.
func hashOf(folder string) string { return path.Base(folder) }

// inArchive is where the folder lies, or would, once it is archived.
func inArchive(folder string) string { return archivedDir + "/" + hashOf(folder) }

// lockOf is the record whose lock guards the key, wherever its folder lies.
func lockOf(folder string) string { return SpecFile(hashOf(folder)) }

// Locate returns where the records of a key lie now, given its hash. fs.ErrNotExist: the key is free. Without the lock
// of the key they may be moved at any time.
func Locate(d *state.Dir, hash string) (string, error) {
	for range 2 { // they may be moved back between the two looks
		for _, folder := range []string{hash, inArchive(hash)} {
			if there, err := holds(d, folder); there || err != nil {
				return folder, err
			}
		}
	}
	return "", fs.ErrNotExist
}

// holds reports whether a folder has an order, or what is left of one.
func holds(d *state.Dir, folder string) (bool, error) {
	_, err := os.Stat(d.Path(SpecFile(folder)))
	if errors.Is(err, fs.ErrNotExist) && IsArchived(folder) {
		_, err = os.Stat(d.Path(TombstoneFile(folder)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look up %s: %w", folder, err)
	}
	return err == nil, nil
}

// StatusOf reads what has become of an order, also while it is moved to archived/ or back.
func StatusOf(d *state.Dir, folder string) (Status, error) {
	return moving(d, folder, func(folder string) (Status, error) { return state.Read[Status](d, StatusFile(folder)) })
}

// Text is the result's text of an execution, nil if it has none.
func Text(d *state.Dir, folder string) ([]byte, error) {
	text, err := moving(d, folder, func(folder string) ([]byte, error) { return os.ReadFile(d.Path(TextFile(folder))) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// moving reads something of a folder, and once more where it went meanwhile.
func moving[T any](d *state.Dir, folder string, read func(folder string) (T, error)) (T, error) {
	v, err := read(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	if now, located := Locate(d, hashOf(folder)); located == nil && now != folder {
		return read(now)
	}
	return v, err
}

// FolderOf is the hash of a local key.
func FolderOf(id string) string { return session.Folder(session.Local, id) }

// Hash is the name of an execution's folder, wherever that lies.
func Hash(folder string) string { return hashOf(folder) }
