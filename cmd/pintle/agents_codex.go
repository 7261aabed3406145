package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/providers/codex"
)

// codexCheck looks at a codex that is there, by what it tells of itself: no prompt is given and nothing is signed in.
type codexCheck struct {
	ctx     context.Context
	program record.Program
}

// doubts are what may be in the way of a run. None of them is reason enough not to try: codex has the last word.
func (c codexCheck) doubts(version string) (all []string) {
	if how := versus(version, codex.Tested); how != "" {
		all = append(all, how+" than "+codex.Tested+", with which this was tested")
		if lack := c.lacks(); lack != "" {
			all = append(all, lack)
		}
	}
	if why := c.signedOut(); why != "" {
		all = append(all, why)
	}
	return all
}

// versus says how a version compares with another one: "newer", "older", "other", or "" for the same.
func versus(version, other string) string {
	ours, theirs := numbered(version), numbered(other)
	switch order := slices.Compare(ours, theirs); {
	case version == other:
		return ""
	case order > 0:
		return "newer"
	case order < 0 && len(ours) > 0:
		return "older"
	}
	return "other"
}

// numbered are the numbers of a version; a word in it ends them, or what follows a - (of a release to come).
func numbered(version string) (all []int) {
	version, _, _ = strings.Cut(version, "-")
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

// mostNamed is how many of the things that are missing are named.
const mostNamed = 5

// lacks has codex write its protocol's schema, and names what is used and not in it.
func (c codexCheck) lacks() string {
	data, err := c.schema()
	var missing []string
	if err == nil {
		missing, err = codex.Used().Missing(data)
	}
	if err != nil {
		return "what its protocol lacks could not be found out: " + err.Error()
	}
	if len(missing) == 0 {
		return ""
	}
	more := ""
	if n := len(missing) - mostNamed; n > 0 {
		missing, more = missing[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return "its protocol lacks " + strings.Join(missing, ", ") + more
}

// schema is what codex says of its protocol, experimental parts included, since those are used too.
func (c codexCheck) schema() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pintle-schema-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := c.ask("app-server", "generate-json-schema", "--experimental", "--out", dir); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, codex.SchemaFile))
}

// ask runs codex with a question and returns all that it says. What it says may name a part of a key, and is never
// passed on.
func (c codexCheck) ask(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.ctx, tellLimit)
	defer cancel()
	cmd := questioned(ctx, c.program, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(args[:min(2, len(args))], " "), cmp.Or(ctx.Err(), err))
	}
	return string(out), err
}

// signedOut says that codex is not signed in, "" if it is or need not be. Its login status knows nothing of model
// providers: to one of the user's own, which wants no login, it says no as well. The server knows.
func (c codexCheck) signedOut() string {
	said, err := c.ask("login", "status")
	if err == nil {
		return ""
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(said, "Not logged in") {
		return "whether it is signed in could not be found out: " + err.Error()
	}
	if wants, known := c.wantsLogin(); known && !wants {
		return ""
	}
	return "not signed in: run codex login"
}

// wantsLogin asks the server whether the model's provider wants a login. It is started without what would reach for the
// network.
func (c codexCheck) wantsLogin() (wants, known bool) {
	ctx, cancel := context.WithTimeout(c.ctx, tellLimit)
	defer cancel()
	cmd := questioned(ctx, c.program, "app-server", "--disable", "plugins", "--disable", "apps")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if errors.Join(inErr, outErr) != nil || cmd.Start() != nil {
		return false, false
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }() // it leaves when its input ends
	_, _ = io.WriteString(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"pintle","version":"1"}}}
{"id":2,"method":"account/read","params":{}}
`)
	for d := json.NewDecoder(out); ; {
		var m struct {
			ID     json.RawMessage
			Result struct{ RequiresOpenaiAuth *bool }
		}
		if d.Decode(&m) != nil {
			return false, false
		}
		if string(m.ID) == "2" {
			answer := m.Result.RequiresOpenaiAuth
			return answer != nil && *answer, answer != nil
		}
	}
}
