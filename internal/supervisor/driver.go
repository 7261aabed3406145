package supervisor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
)

// provider is what drives an agent: it is called as the agent is, or the user has named another one of its kind.
func (s *Supervisor) provider(provider, kind string) (providers.Provider, bool) {
	p, ok := s.o.Providers[cmp.Or(kind, provider)]
	return p, ok
}

// provider is the one of the run's agent.
func (r *run) provider() providers.Provider {
	p, _ := r.s.provider(cmp.Or(r.spec.Payload.Provider, r.st.Provider), cmp.Or(r.spec.Kind, r.st.Kind))
	return p
}

// startedAs is how the run's process is started: as ordered, or as the driver says for the order that comes first.
func (r *run) startedAs(o providers.Order) providers.Launch {
	p := r.spec.Payload
	d := r.provider()
	if d.Launch == nil {
		return providers.Launch{Args: p.Argv}
	}
	l := d.Launch(o, slices.Concat(r.spec.More, p.AgentArgs), r.s.dir.Path(agentDir(r.st.RuntimeID)))
	l.Args = slices.Concat(l.Args[:1], r.spec.Words, l.Args[1:])
	return l
}

// packaged is the version that the agent's npm package has; "" if it has none, or the agent tells it itself.
func (r *run) packaged() string {
	manifest := r.provider().Manifest
	if manifest == nil {
		return ""
	}
	var p struct{ Version string }
	if real, err := filepath.EvalSymlinks(r.program()); err == nil {
		data, _ := os.ReadFile(manifest(real)) // without one there is no version
		_ = json.Unmarshal(data, &p)
	}
	return p.Version
}

// agentDir is where the files lie that an agent's process is started with, relative to the state directory.
func agentDir(runtime string) string { return filepath.Join("runtimes", runtime, "agent") }

// lay writes the files that the process is started with. Killed in the midst, the process was not started, and another one
// has a directory of its own.
func (r *run) lay(files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	if err := r.s.dir.Mkdir("runtimes", r.st.RuntimeID, "agent"); err != nil {
		return err
	}
	for name, text := range files {
		if err := r.s.dir.WriteSide(filepath.Join(agentDir(r.st.RuntimeID), name), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// putAside renames what the agent would destroy the conversation by. It is looked at anew before every start: killed in the
// midst, the rest is put aside by the next one.
func (r *run) putAside(o providers.Order, env map[string]string) error {
	if o.Conversation == "" || o.Lost || r.provider().Aside == nil {
		return nil
	}
	a := r.provider().Aside(env, o.Conversation)
	found, err := filepath.Glob(a.Pattern)
	if err != nil {
		return fmt.Errorf("look for the agent's conversation: %w", err)
	}
	var files []providers.File
	for _, path := range found {
		if info, err := os.Stat(path); err == nil {
			files = append(files, providers.File{Path: path, Size: info.Size()})
		}
	}
	for _, m := range a.Moves(files, time.Now()) {
		if _, err := os.Lstat(m.To); err == nil {
			m.To += "." + r.st.RuntimeID // nothing is written over
		}
		if err := os.Rename(m.From, m.To); err != nil {
			return fmt.Errorf("put the agent's file aside: %w", err)
		}
	}
	return nil
}

// guard is the lock of the conversation that goes on, "" if the agent locks it itself, or it is not known yet: then nobody
// else knows it either.
func (r *run) guard(o providers.Order) string {
	if !r.provider().Lockless || o.Conversation == "" {
		return ""
	}
	return guardFile(r.provider().Name, o.Conversation)
}

// guardFile is the path of a conversation's lock, relative to the state directory.
func guardFile(provider, conversation string) string {
	sum := sha256.Sum256([]byte(provider + "\x00" + conversation))
	return shim.GuardFile(hex.EncodeToString(sum[:16]))
}

// lost reports whether the agent has nothing of a conversation on disk. Where that cannot be told, it is asked for it.
func (r *run) lost(conversation string, env map[string]string) bool {
	kept := r.provider().Kept
	if conversation == "" || kept == nil {
		return false
	}
	return !slices.ContainsFunc(kept(env, conversation), func(pattern string) bool {
		found, err := filepath.Glob(pattern)
		return err != nil || len(found) > 0
	})
}
