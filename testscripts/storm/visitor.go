package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/supervisor"
	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
)

// callLimit is when a request counts as hanging, deedLimit when one that is repeated counts as never answered.
const (
	callLimit = 30 * time.Second
	deedLimit = 45 * time.Second
)

// visitor is a client of the socket, which comes back as the same one.
type visitor struct {
	r     *round
	grace *int64 // in milliseconds; nil: as long as the supervisor has it

	mu    sync.Mutex
	name  string
	id    string
	lives int // clients that it was
	token string
	c     *rpc.Client // nil: it is away
}

// deed is an operation: it is repeated until it is answered, and its answer is the same for ever.
type deed struct {
	method string
	params any
	id     string
	answer json.RawMessage
}

// newOperation is an operation of now.
func (d dice) newOperation() api.Operation {
	var b [16]byte
	for i := range b {
		b[i] = byte(d.IntN(256))
	}
	return api.Operation{OperationID: session.NewOperation(time.Now(), b)}
}

// connected is its connection, which is made if need be.
func (v *visitor) connected(ctx context.Context) (*rpc.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.c != nil {
		select {
		case <-v.c.Done():
		default:
			return v.c, nil
		}
	}
	c, err := v.dial(ctx)
	if err != nil {
		return nil, err
	}
	v.c = c
	return c, nil
}

// dial says hello. A client whose first hello was not answered is known, and nobody has its token: it is another one from then on.
func (v *visitor) dial(ctx context.Context) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := rpc.Dial(ctx, v.r.socket())
	if err != nil {
		return nil, err
	}
	if v.id == "" {
		v.lives++
		v.id = fmt.Sprintf("%s.%d", v.name, v.lives)
	}
	c := rpc.NewClient(conn, nil)
	var w api.Welcome
	err = c.Call(ctx, api.MethodHello, api.Hello{Protocol: api.ProtocolVersion, Client: v.id, Version: "storm", ResumeToken: v.token, GraceMs: v.grace}, &w)
	if err == nil {
		v.token = w.ResumeToken
		return c, nil
	}
	code, _ := c.Reason()
	c.Close()
	if code == rpc.CloseToken || v.token == "" {
		v.r.strand(v.id)
		v.id, v.token = "", ""
	}
	return nil, err
}

// vanish leaves without a word.
func (v *visitor) vanish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.c != nil {
		v.c.Close()
		v.c = nil
	}
}

// goodbye ends the client, and is repeated until that is known: by the reason of the end of its connection.
func (v *visitor) goodbye() {
	for limit := time.Now().Add(deedLimit); time.Now().Before(limit); {
		c, err := v.connected(context.Background())
		if err != nil {
			v.r.revive()
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		err = c.Call(ctx, api.MethodGoodbye, nil, nil)
		cancel()
		if _, why := c.Reason(); err == nil || why == "goodbye" || api.CodeOf(err) == api.CodeClientGone {
			v.vanish()
			v.mu.Lock()
			v.id, v.token = "", ""
			v.mu.Unlock()
			return
		}
	}
	v.r.blame("%s: goodbye was not answered in %v", v.name, deedLimit)
}

// call makes one request.
func (v *visitor) call(ctx context.Context, limit time.Duration, method string, params any) (answer json.RawMessage, err error) {
	c, err := v.connected(ctx)
	if err != nil {
		v.r.revive()
		return nil, api.E(api.CodeUnreachable, "%w", err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = c.Call(ctx, method, params, &answer)
	if errors.Is(err, context.DeadlineExceeded) && limit == callLimit {
		v.r.hung(fmt.Sprintf("%s: %s %s was not answered in %v (since %s)", v.name, method, brief(params), limit, began.Format("15:04:05.000")))
	}
	if api.CodeOf(err) == api.CodeUnreachable {
		sleep(context.Background(), 20*time.Millisecond)
	}
	return answer, err
}

// hung notes a request that hangs, and has the supervisor say in its log where it stands.
func (r *round) hung(what string) {
	r.blame("hangs: %s", what)
	if id, ok := r.supervisor(); ok {
		_ = proc.Signal(id, syscall.SIGQUIT)
	}
}

func brief(params any) string {
	data, _ := json.Marshal(params)
	return string(data[:min(len(data), 200)])
}

// do has a deed done. Some of its requests are given up early and made again.
func (v *visitor) do(d dice, what *deed) error {
	limit := time.Now().Add(deedLimit)
	for {
		patience := callLimit
		if d.IntN(8) == 0 {
			patience = d.between(time.Millisecond, 150*time.Millisecond)
		}
		full := v.r.fullN.Load()
		answer, err := v.call(context.Background(), patience, what.method, what.params)
		switch full = full%2 + v.r.fullN.Load() - full; {
		case err == nil:
			what.answer = answer
			v.r.answered(what)
			return nil
		case time.Now().After(limit):
			v.r.blame("%s: %s %s: not answered in %v: %v", v.name, what.method, brief(what.params), deedLimit, err)
			return err
		case v.again(err, full > 0):
			sleep(context.Background(), d.between(time.Millisecond, 30*time.Millisecond))
		default:
			v.r.say("%s %s -> %s", v.name, what.method, api.CodeOf(err))
			v.judge(what, err)
			return err
		}
	}
}

// again reports whether an error says that it is to be tried again: it is not known, or not yet.
func (v *visitor) again(err error, full bool) bool {
	switch api.CodeOf(err) {
	case api.CodeUnreachable, api.CodeStopping, api.CodeBusy, api.CodeAbandoned, api.CodeClientGone, api.CodeHello, api.CodeFull:
		return true
	case api.CodeInternal, api.CodeCorrupt:
		return full || errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// refusals are what the methods may be refused with, though nothing is wrong.
var refusals = map[string][]api.Code{
	api.MethodSessCreate:    {api.CodeNoAgent, api.CodeHostDied, api.CodeCancelled, api.CodeDied},
	api.MethodSessAttach:    {api.CodeOwned, api.CodeNotFound},
	api.MethodSessDetach:    {api.CodeNotFound},
	api.MethodSessSend:      {api.CodeOwned, api.CodeSteer, api.CodeCrashLooping, api.CodeNotFound},
	api.MethodSessInterrupt: {api.CodeOwned, api.CodeNotFound},
	api.MethodAnswer:        {api.CodeOwned, api.CodeNotFound, api.CodeResolved, api.CodeAmbiguous},
}

func (v *visitor) judge(what *deed, err error) {
	for _, code := range refusals[what.method] {
		if api.CodeOf(err) == code {
			return
		}
	}
	v.r.blame("%s: %s %s: %s: %v", v.name, what.method, brief(what.params), api.CodeOf(err), err)
}

// socket is that of the supervisor that is there, or was.
func (r *round) socket() string {
	data, err := os.ReadFile(filepath.Join(r.home, supervisor.File))
	var rec supervisor.Record
	if err != nil || json.Unmarshal(data, &rec) != nil {
		return filepath.Join(r.home, "none")
	}
	return rec.Socket
}

// revive has a supervisor started, if there is none and nobody has started one in a while: what was left goes on then.
func (r *round) revive() {
	sleep(context.Background(), 20*time.Millisecond)
	r.reviving.Lock()
	defer r.reviving.Unlock()
	if _, ok := r.supervisor(); ok || time.Since(r.revived) < time.Second {
		return
	}
	r.revived = time.Now()
	if res := r.pintle(1, true, "supervise", "restart"); res.code != 0 && res.code != -1 && res.code != 12 && !res.full {
		r.blame("supervise restart for a client: exit %d: %s", res.code, res.err)
	}
}

// strand notes a client that nobody can be any more: its record lasts as long as its grace.
func (r *round) strand(id string) {
	r.talk.mu.Lock()
	defer r.talk.mu.Unlock()
	r.talk.stranded[id] = true
}

// there reports whether there is a file.
func there(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
