package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/state"
)

// killer kills somebody now and then: verbs, the supervisor, shims, agents and what they started.
func (r *round) killer(ctx context.Context, d dice) {
	for ctx.Err() == nil {
		sleep(ctx, d.between(5*time.Millisecond, 120*time.Millisecond))
		switch roll := d.IntN(100); {
		case roll < 35:
			r.killClient(d)
		case roll < 65:
			r.killSupervisor()
		case roll < 82:
			r.killOne(d, "shim", func(t proc.Tagged) bool { return role(t) == "shim" })
		default:
			r.killOne(d, "agent", func(t proc.Tagged) bool { return role(t) == "" })
		}
	}
}

// role is what a process of the home is: a pintle by its first argument, "" for what agents run.
func role(t proc.Tagged) string {
	if len(t.Args) > 1 && (t.Args[0] == "pintle" || filepath.Base(t.Args[0]) == "pintle") {
		return t.Args[1]
	}
	return ""
}

// tagged are the living processes of the home.
func (r *round) tagged() []proc.Tagged {
	all, _ := proc.WithToken("PINTLE_HOME", func(v string) bool { return v == r.home })
	return all
}

func (r *round) killClient(d dice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*exec.Cmd
	for c := range r.clients {
		all = append(all, c)
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *exec.Cmd) int { return a.Process.Pid - b.Process.Pid })
	if all[d.IntN(len(all))].Process.Kill() == nil {
		r.kills.Add(1)
	}
}

func (r *round) supervisor() (id proc.Identity, ok bool) { return supervisorOf(r.home) }

func supervisorOf(home string) (id proc.Identity, ok bool) {
	data, err := os.ReadFile(filepath.Join(home, "supervisor.json"))
	if err != nil || json.Unmarshal(data, &id) != nil {
		return id, false
	}
	return id, id.Liveness() == proc.Alive
}

func (r *round) killSupervisor() { r.killSupervisorOf(r.home) }

func (r *round) killSupervisorOf(home string) {
	if id, ok := supervisorOf(home); ok && proc.Signal(id, syscall.SIGKILL) == nil {
		r.say("SIGKILL supervisor %d", id.PID)
		r.kills.Add(1)
	}
}

// killOne kills one that which accepts; its order need not complete then.
func (r *round) killOne(d dice, what string, which func(proc.Tagged) bool) {
	all := slices.DeleteFunc(r.tagged(), func(t proc.Tagged) bool { return !which(t) })
	if len(all) == 0 {
		return
	}
	victim := all[d.IntN(len(all))]
	if o := r.orderOf(victim); o != nil {
		o.spoil(what + " killed")
	} else if r.isChore(victim) {
		r.spoilTrees(what + " of a chore killed")
	} else if !r.isTalk(victim) {
		return // it is not known whose it is: what it spoils could not be told
	}
	if proc.Signal(victim.Identity, syscall.SIGKILL) == nil {
		r.say("SIGKILL %s %d", what, victim.PID)
		r.kills.Add(1)
	}
}

// orderOf finds whose a process is: agents say it in their environment, shims by their runtime's record.
func (r *round) orderOf(t proc.Tagged) *order {
	r.mu.Lock()
	defer r.mu.Unlock()
	if role(t) != "shim" {
		key, _ := proc.Variable(t.PID, "PINTLE_EXECUTION")
		return r.byKey[key]
	}
	rt, ok := r.runtimeOf(t)
	for _, o := range r.orders {
		if ok && record.FolderOf(o.key) == rt.Folder {
			return o
		}
	}
	return nil
}

// isTalk reports whether a process is of a session that clients share, and not of an order.
func (r *round) isTalk(t proc.Tagged) bool {
	if role(t) != "shim" {
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", t.PID))
		return err == nil && filepath.Dir(cwd) == r.agents()
	}
	rt, ok := r.runtimeOf(t)
	d, err := state.OpenExisting(r.home)
	if !ok || err != nil {
		return false
	}
	spec, err := record.SpecOf(d, rt.Folder)
	return err == nil && spec.Payload.Provider == "codex"
}

// runtimeOf is the record of what a shim is for.
func (r *round) runtimeOf(shim proc.Tagged) (rt record.Runtime, ok bool) {
	if len(shim.Args) < 3 {
		return rt, false
	}
	data, err := os.ReadFile(filepath.Join(r.home, record.RuntimeFile(shim.Args[2])))
	return rt, err == nil && json.Unmarshal(data, &rt) == nil
}

// freezer stops the supervisor or a shim for a short time.
func (r *round) freezer(ctx context.Context, d dice) {
	for ctx.Err() == nil {
		sleep(ctx, d.between(500*time.Millisecond, 2*time.Second))
		id, ok := r.supervisor()
		if d.IntN(2) == 0 {
			shims := slices.DeleteFunc(r.tagged(), func(t proc.Tagged) bool { return role(t) != "shim" })
			if ok = len(shims) > 0; ok {
				id = shims[d.IntN(len(shims))].Identity
			}
		}
		if !ok || proc.Signal(id, syscall.SIGSTOP) != nil {
			continue
		}
		r.say("frozen %d", id.PID)
		sleep(ctx, d.between(50*time.Millisecond, 1200*time.Millisecond))
		_ = proc.Signal(id, syscall.SIGCONT)
	}
}

// mount puts the state directory on a disk that can be filled, if we may.
func (r *round) mount() {
	disk := filepath.Join(r.dir, "m")
	if mountSmall(disk) == nil {
		r.disk = disk
	}
}

// filler fills the small disk now and then, and frees it again.
func (r *round) filler(ctx context.Context, d dice) {
	for r.disk != "" && ctx.Err() == nil {
		sleep(ctx, d.between(2*time.Second, 5*time.Second))
		r.fullN.Add(1)
		r.say("disk full")
		r.fill(filepath.Join(r.disk, "ballast"))
		sleep(ctx, d.between(100*time.Millisecond, 1200*time.Millisecond))
		_ = os.Remove(filepath.Join(r.disk, "ballast"))
		r.fullN.Add(1)
		r.say("disk free")
	}
}

func (r *round) fill(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for size := len(block); size >= 4096; size /= 2 {
		for {
			if _, err := f.Write(block[:size]); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				return
			}
		}
	}
}
