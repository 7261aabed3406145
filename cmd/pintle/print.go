package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// print writes one JSON value on one line of standard output.
func (a *app) print(v any) {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a closed standard output ends us by SIGPIPE
}

// typed gives an error its code: errors of other packages are translated here and nowhere else.
func typed(err error) *api.Error {
	var e *api.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, session.ErrKey):
		return api.E(api.CodeUsage, "%w", err)
	case errors.Is(err, state.ErrDamaged):
		return api.E(api.CodeCorrupt, "%w", err).WithNext("pintle doctor")
	case errors.Is(err, state.ErrNewer):
		return api.E(api.CodeNewer, "%w", err).WithNext("use the pintle that wrote it")
	case errors.Is(err, state.ErrNotOurs):
		return api.E(api.CodeNotOurs, "%w", err).WithNext("set PINTLE_HOME to another directory")
	case errors.Is(err, state.ErrFull):
		return api.E(api.CodeFull, "%w", err).WithNext("free some space and repeat")
	case errors.Is(err, fs.ErrPermission):
		return api.E(api.CodeNotOurs, "%w", err)
	}
	return api.As(err)
}

// labels parses k=v words.
func labels(words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			return nil, usage("label %q: want k=v", w)
		}
		if other, twice := m[k]; twice && other != v {
			return nil, usage("label %q: given as %q and as %q", k, other, v)
		}
		m[k] = v
	}
	return m, nil
}

// mute writes control characters and bytes that are no UTF-8 as Go does (\x1b), so that no terminal obeys them. A
// newline stays.
func mute(s string) string {
	if !strings.ContainsFunc(s, loud) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if loud(r) {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// loud reports whether mute looks at a character: bytes that are no UTF-8 come as RuneError, which Quote leaves as
// it is if it was one in truth. What turns the direction of writing shows words in another order than they have.
func loud(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r))
}

// shown is data as standard output gets it: raw, unless it is a terminal.
func (a *app) shown(s string) string {
	if !terminal(a.stdout) {
		return s
	}
	return mute(s)
}

// terminal reports whether somebody may be looking, or typing: /dev/null is a device too, and nobody's.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	is := false
	control(f, func(fd int) {
		_, err := unix.IoctlGetTermios(fd, getTermios)
		is = err == nil
	})
	return is
}

// control has something asked of an open file's device. Fd would make it blocking for everybody who shares it.
func control(f *os.File, ask func(fd int)) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { ask(int(fd)) })
	}
}
