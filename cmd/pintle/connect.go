package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

const (
	// reachLimit is how long in all a supervisor may fail to answer before a verb gives up (exit 12).
	reachLimit = 10 * time.Second
	// helloLimit is how long one may take over its hello; a frozen one never answers.
	helloLimit = 5 * time.Second
	// retryReach is the pause between two looks for one that is starting, at first; it doubles up to retryMost, since
	// of fifty verbs forty-nine only take its time from the one that starts it.
	retryReach = 10 * time.Millisecond
	retryMost  = 160 * time.Millisecond
)

// config is the configuration in force. What is wrong with it is for the user to mend, unless it is somebody
// else's, as the state directory next to it is then.
func (a *app) config() (config.Config, error) {
	cfg, err := config.Load(a.getenv)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		err = usage("%w", err)
	}
	return cfg, err
}

// home is where the state directory is, or belongs.
func (a *app) home() (string, error) {
	path, err := config.StateDir(a.getenv)
	if err != nil {
		return "", usage("%w", err)
	}
	return path, nil
}

// open opens the state directory, which is made if need be.
func (a *app) open(ctx context.Context) (*state.Dir, error) {
	path, err := a.home()
	if err != nil {
		return nil, err
	}
	return state.Open(ctx, path)
}

// existing opens the state directory of a verb that only reads; nil if there is none.
func (a *app) existing() (*state.Dir, error) {
	path, err := a.home()
	if err != nil {
		return nil, err
	}
	d, err := state.OpenExisting(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return d, err
}

// need is existing for verbs about a run: without a state directory there is none.
func (a *app) need(id string) (*state.Dir, error) {
	d, err := a.existing()
	if err == nil && d == nil {
		return nil, api.E(api.CodeNotFound, "no run is called %s: there are no runs yet", id).WithNext("pintle run --help")
	}
	return d, err
}

// dial connects to a supervisor that is running, as a client that does not come back.
func dial(ctx context.Context, d *state.Dir) (*rpc.Client, api.Welcome, error) {
	return dialAs(ctx, d, api.Hello{Client: clientID(), GraceMs: new(int64)}, nil)
}

// dialAs connects to a supervisor that is running, and says hello.
func dialAs(ctx context.Context, d *state.Dir, hello api.Hello, told func(string, json.RawMessage)) (*rpc.Client, api.Welcome, error) {
	ctx, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	var w api.Welcome
	rec, err := supervisorOf(d)
	if err != nil {
		return nil, w, err
	}
	conn, err := rpc.Dial(ctx, rec.Socket)
	if err != nil {
		return nil, w, err
	}
	c := rpc.NewClient(conn, told)
	hello.Protocol, hello.Version = api.ProtocolVersion, Version
	if err := c.Call(ctx, api.MethodHello, hello, &w); err != nil {
		c.Close()
		return nil, w, err
	}
	return c, w, nil
}

// clientID names the client that one connection of a verb is. A pid alone may have been another's.
func clientID() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return fmt.Sprintf("cli-%d-%x", os.Getpid(), random)
}

// supervisorOf reads who supervises. The record in a copied state directory names the original's, which is
// not ours: its socket is in another directory (X38).
func supervisorOf(d *state.Dir) (supervisor.Record, error) {
	rec, err := state.Read[supervisor.Record](d, supervisor.File)
	if err != nil {
		return rec, err
	}
	dir, err := rpc.SocketDir(d.Path())
	if err != nil {
		return rec, err
	}
	ours, err1 := os.Stat(dir)
	its, err2 := os.Stat(filepath.Dir(rec.Socket))
	if err1 != nil || err2 != nil || !os.SameFile(ours, its) {
		return rec, fmt.Errorf("the supervisor at %s is another directory's: %w", rec.Socket, fs.ErrNotExist)
	}
	return rec, nil
}

// reach connects to the supervisor and starts one if none answers. However many verbs do so at once, the
// holder of the start lock starts it, and the others find it.
func (a *app) reach(ctx context.Context, d *state.Dir) (*rpc.Client, error) {
	c, _, err := a.reachAs(ctx, d, dial)
	return c, err
}

// dialer connects as somebody.
type dialer func(context.Context, *state.Dir) (*rpc.Client, api.Welcome, error)

func (a *app) reachAs(ctx context.Context, d *state.Dir, dial dialer) (*rpc.Client, api.Welcome, error) {
	limited, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	for delay := retryReach; ; delay = min(2*delay, retryMost) {
		c, w, err := dial(limited, d)
		if err == nil && older(w.Version, Version) {
			err = a.replace(limited, c)
		}
		if err == nil {
			return c, w, nil
		}
		if errors.Is(err, rpc.ErrDirectory) {
			return nil, w, api.E(api.CodeNotOurs, "%w", err)
		}
		if limited.Err() == nil {
			if failed := a.start(limited, d); failed != nil && limited.Err() == nil {
				return nil, w, failed
			}
			pause(limited, delay)
		}
		if ctx.Err() != nil {
			return nil, w, ctx.Err()
		}
		if limited.Err() != nil {
			return nil, w, unreachable(d, err)
		}
	}
}

// unreachable tells one that is frozen from one that does not start.
func unreachable(d *state.Dir, why error) error {
	if supervised(d) {
		return api.E(api.CodeUnreachable, "the supervisor does not answer; the recorded order stands").
			WithNext("pintle supervise restart --force")
	}
	return api.E(api.CodeUnreachable, "no supervisor answers: %w; the recorded order stands", why).
		WithNext("pintle doctor; see supervisor.log in the state directory")
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// replace asks an older supervisor to leave; its runtimes stay with their shims.
func (a *app) replace(ctx context.Context, c *rpc.Client) error {
	defer c.Close()
	if err := c.Call(ctx, api.MethodSupervisor, api.Leave{}, nil); err != nil {
		return err
	}
	return errors.New("an older supervisor is leaving")
}

// start starts a supervisor unless somebody is at it. From inside an agent nothing is started: a child of
// a run would end with it, so the run's shim does it, within two seconds.
func (a *app) start(ctx context.Context, d *state.Dir) error {
	if strings.HasPrefix(a.getenv(shim.TokenVariable), d.HomeID()+".") {
		return nil
	}
	unlock, err := state.TryLock(d.Path("locks", "start"))
	if errors.Is(err, state.ErrLocked) {
		return nil // somebody is at it
	}
	if err != nil {
		return err
	}
	defer unlock()
	if c, _, err := dial(ctx, d); err == nil {
		c.Close()
		return nil
	}
	return a.spawn(d)
}

// spawn starts a supervisor, detached, and waits until it serves or has gone again.
func (a *app) spawn(d *state.Dir) error {
	if _, err := rpc.SocketDir(d.Path()); errors.Is(err, rpc.ErrDirectory) {
		return api.E(api.CodeNotOurs, "%w", err) // it could only say so in its log
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer null.Close()
	log, err := os.OpenFile(d.Path("supervisor.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start supervisor: %w", state.Full(err))
	}
	defer log.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	defer ready.Close()
	_, err = proc.Spawn{
		Path: self(), Args: []string{"pintle", "supervise", "--ready"}, Env: a.supervisorEnv(d), Dir: "/",
		Files: []*os.File{null, null, log, theirs}, Setsid: true, Umask: -1, // what it makes has its mode; git's files are to have the user's
	}.Start()
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	_ = ready.SetReadDeadline(time.Now().Add(reachLimit))
	_, _ = bufio.NewReader(ready).ReadByte() // a byte or its end: either way, dial again
	return nil
}

// self is our own executable, which may have been replaced or removed since.
func self() string {
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe"
	}
	path, _ := os.Executable()
	return path
}

// supervisorEnv is the published list alone: no token of an agent, no secret. Agents get the environment of
// the verb that ordered them.
func (a *app) supervisorEnv(d *state.Dir) []string {
	env := environ.Policy{}.Compose(a.environ())
	own := map[string]string{"PINTLE_HOME": d.Path()}
	for _, name := range []string{"PINTLE_CONFIG", "XDG_RUNTIME_DIR", crash.Variable} {
		if v := a.getenv(name); v != "" {
			own[name] = v
		}
	}
	return env.With(own).List()
}

// call makes one request of a supervisor, which is started if need be, and again of its successor if it
// dies meanwhile: every request that verbs make may be repeated. It survives any number of deaths, unless
// nothing but broken connections comes for reachLimit.
func (a *app) call(ctx context.Context, d *state.Dir, before func(*rpc.Client) error, method string, params, result any) error {
	until := time.Now().Add(reachLimit)
	for {
		c, err := a.reach(ctx, d)
		if err != nil {
			return err
		}
		began := time.Now()
		err = request(ctx, c, before, method, params, result)
		if err == nil || ctx.Err() != nil {
			return err
		}
		code := typed(err).Code
		if code == api.CodeStopping || time.Since(began) > retryReach {
			until = time.Now().Add(reachLimit) // it is there, or was for a while
		}
		if (code != api.CodeUnreachable && code != api.CodeStopping) || time.Now().After(until) {
			return err
		}
		pause(ctx, retryReach)
	}
}

func request(ctx context.Context, c *rpc.Client, before func(*rpc.Client) error, method string, params, result any) error {
	defer c.Close()
	if before != nil {
		if err := before(c); err != nil {
			return err
		}
	}
	return c.Call(ctx, method, params, result)
}
