// Package record names the records of executions, sessions and workspaces, and does what short-lived verbs
// and the supervisor both do with them: claim, look up, show.
//
// One writer a file: verbs write spec.json, through Claim and Desire; the supervisor writes the rest.
package record

import (
	"slices"
	"time"

	"github.com/pintle/pintle/internal/policy"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Spec is spec.json: the order, and what is wanted of it since.
type Spec struct {
	Version    int               `json:"version"`
	ID         string            `json:"id"`
	Controller string            `json:"controller"`
	CreatedAt  time.Time         `json:"createdAt"`
	Payload    session.Payload   `json:"payload"`
	Labels     map[string]string `json:"labels,omitempty"`
	Program
	Limits      Limits      `json:"limits"`
	Environment Environment `json:"environment"`
	Desired     Desired     `json:"desired"`
	Tree        *TreeOrder  `json:"tree,omitempty"` // nil: it runs where it is told, and nothing is made
	// Chore is of an execution that pintle gave itself: it works in that workspace and is nobody's to list.
	Chore *Chore `json:"chore,omitempty"`
	// Opening is of one that pintle gave itself to have a session's conversation stand, without a prompt.
	Opening *Opening `json:"opening,omitempty"`
	// Client is who sent it over the socket, and may drive the session.
	Client string `json:"client,omitempty"`
	// Policy decides on what the agent asks for, before anybody is asked; nil: there is none, but for --approve.
	Policy *policy.Policy `json:"policy,omitempty"`
	// When is how it comes into its session: "" in its turn, steer into the turn that runs, interrupt in place of that.
	When string `json:"when,omitempty"`
}

// Program is what carries an order out, as the user's configuration had it when the order was given.
type Program struct {
	// Path is of what is started: absolute, or below a worktree's root.
	Path string `json:"path,omitempty"`
	// Kind is the driver of an agent that the user has named himself; "": the agent is called as its driver is.
	Kind string `json:"kind,omitempty"`
	// Words come behind the program's name, before the driver's own arguments; More come behind those.
	Words []string `json:"words,omitempty"`
	More  []string `json:"more,omitempty"`
}

// Equal reports whether both start the same.
func (p Program) Equal(q Program) bool {
	return p.Path == q.Path && p.Kind == q.Kind && slices.Equal(p.Words, q.Words) && slices.Equal(p.More, q.More)
}

// Opening says which session's conversation is to stand.
type Opening struct {
	Session string `json:"session"`
	Number  int    `json:"number"` // of the session's openings, from 1
}

// Limits bound a run and are no part of its identity.
type Limits struct {
	Timeout     time.Duration `json:"timeout,omitempty"` // of the whole run, in nanoseconds
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	Retries     int           `json:"retries,omitempty"` // of what had begun (B2)
	Warm        time.Duration `json:"warm,omitempty"`    // how long the agent's process is kept for the session's next run
	// Share says that the agent's process may serve other sessions too, whose orders say the same.
	Share bool `json:"share,omitempty"`
	// Archive says that the run is archived at its end, if it completed (--rm).
	Archive bool `json:"archive,omitempty"`
	// Attended says that the order was given at a terminal, where somebody answers what the agent asks for.
	Attended bool `json:"attended,omitempty"`
}

// Environment is what may be stored of the agent's environment (E4): the values of a few, the names of all.
type Environment struct {
	Values  map[string]string `json:"values,omitempty"`
	Names   []string          `json:"names,omitempty"`
	Secrets []string          `json:"secrets,omitempty"`
	Umask   int               `json:"umask"`
	// Inherit says that it is the session's: whatever its process has, or would have.
	Inherit bool `json:"inherit,omitempty"`
}

// Desired is what is wanted now. The supervisor makes it true.
type Desired struct {
	Attempt int       `json:"attempt"` // the newest that was ordered, from 1
	At      time.Time `json:"at"`
	// Deadline is of this attempt, by the clock since the boot with that id, in nanoseconds; 0: none.
	Deadline   time.Duration `json:"deadline,omitempty"`
	BootID     string        `json:"bootId"`
	Cancel     *api.Cancel   `json:"cancel,omitempty"`
	AssertDead string        `json:"assertDead,omitempty"` // a runtime that the user says is dead
}

// Status is status.json: what has become of the order. It holds all that ps shows, so that listing
// thousands reads one file each.
type Status struct {
	Version int `json:"version"`
	api.Execution
	Kind      string `json:"kind,omitempty"`      // the driver, if the provider is called otherwise
	RuntimeID string `json:"runtimeId,omitempty"` // of the newest try, also after its end
	BootID    string `json:"bootId,omitempty"`    // under which that runtime was made
	Try       int    `json:"try,omitempty"`       // within the attempt, from 1
	// Since: no event of the attempt is at or before that sequence of the session's journal.
	Since uint64 `json:"since,omitempty"`
	// Retried counts the tries that went on with what had begun (--retries). Resume is the conversation in which the next
	// one does; "" for a try from the beginning.
	Retried int    `json:"retried,omitempty"`
	Resume  string `json:"resume,omitempty"`
	// Spent is what the tries before this one have cost.
	Spent api.Usage `json:"spent,omitzero"`
	// Replaces is the folder of the execution whose turn this one, a message that interrupts, comes in place of.
	Replaces string `json:"replaces,omitempty"`
	// GivenUp is why the attempt ends before anything of it begins: on record before its worktree is taken back.
	GivenUp *GivenUp `json:"givenUp,omitempty"`
	// Leaving says that the run is to be archived now (--rm).
	Leaving bool `json:"leaving,omitempty"`
	// Resolved are the permissions of the attempt that were answered, or have lapsed, the newest last.
	Resolved []api.Answered `json:"resolved,omitempty"`
}

// GivenUp is an ending of which nothing was begun.
type GivenUp struct {
	Ending session.Ending `json:"ending"`
	Cause  *api.Cause     `json:"cause,omitempty"`
	Cancel *api.Cancel    `json:"cancel,omitempty"`
}

// Workspace is workspaces/<id>.json.
type Workspace struct {
	Version    int    `json:"version"`
	ID         string `json:"id"`
	Cwd        string `json:"cwd"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Base       string `json:"base,omitempty"`
	Head       string `json:"head,omitempty"`
	// Session is whose it is; "" of one that was made for itself. CreatedAt is absent in records of before there were worktrees.
	Session   string    `json:"session,omitempty"`
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Worktree is the record of the worktree of pintle's in which it is, and Root that one's directory.
	Worktree   string     `json:"worktree,omitempty"`
	Root       string     `json:"root,omitempty"`
	ArchivedAt *time.Time `json:"archivedAt,omitempty"`
	// Report is what became of it when it was archived last.
	Report *api.Report `json:"report,omitempty"`
}

// Session is session.json.
type Session struct {
	Version   int       `json:"version"`
	ID        string    `json:"id"`
	Execution string    `json:"execution"` // folder of the execution that opened it
	Workspace string    `json:"workspace"`
	Provider  string    `json:"provider"`
	Kind      string    `json:"kind,omitempty"` // the driver, if it is called otherwise
	Fence     int64     `json:"fence"`
	BootID    string    `json:"bootId"` // under which its journal was last written
	CreatedAt time.Time `json:"createdAt"`
	// Conversation is the agent's own id of it, once it is one: the agent has named a turn of it.
	Conversation string `json:"conversation,omitempty"`
	// Priced is what that had cost in all when an order last left it, where its agent tells no other price.
	Priced *float64 `json:"priced,omitempty"`
	// Queue are the executions that have not ended, in the order in which they have their turn.
	Queue []Turn `json:"queue,omitempty"`
	// Runs are the executions that have been in it, the oldest first.
	Runs       []string   `json:"runs,omitempty"`
	ArchivedAt *time.Time `json:"archivedAt,omitempty"` // from when on nothing goes on in it
	// Always are the rules by which somebody has allowed things for all of its turns.
	Always []policy.Rule `json:"always,omitempty"`
	// Leases are its clients'. Executions in the queue hold it too.
	Leases session.Leases `json:"leases,omitempty"`
	// Changed is the last change of them: killed before it was in the journal, it is told by who comes next.
	Changed []LeaseChange `json:"changed,omitempty"`
	// Template is what its messages are made from, of a session that was created over the socket.
	Template *Spec `json:"template,omitempty"`
	// Exited is the last runtime whose exit has raised the fence: no repeat raises it again.
	Exited string `json:"exited,omitempty"`
	// Opened is the agent's own id of a conversation that stands and in which no turn was.
	Opened string `json:"opened,omitempty"`
	// Operation is the one that made it, over the socket.
	Operation string `json:"operation,omitempty"`
	// Asked is the fingerprint of that operation's request: it may be refused, and has no receipt then.
	Asked string `json:"asked,omitempty"`
	// Interrupts are the newest operations that had a turn end.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
	// Openings counts those of its conversation that pintle gave itself to do.
	Openings int             `json:"openings,omitempty"`
	Policy   session.Policy  `json:"policy,omitempty"` // of restarts; "": on-crash
	Restart  session.Restart `json:"restart,omitzero"`
}

// Interrupt is an operation that had a turn end, and whose. Cut before its receipt, its repeat means that turn and no later one.
type Interrupt struct {
	Operation string `json:"operation"`
	Folder    string `json:"folder"`
}

// maxInterrupts is how many are remembered: until its receipt one is needed, which is soon.
const maxInterrupts = 16

// Interrupted is the folder of the execution whose turn an operation had end, "" if it had none end.
func (s *Session) Interrupted(operation string) string {
	i := slices.IndexFunc(s.Interrupts, func(i Interrupt) bool { return operation != "" && i.Operation == operation })
	if i < 0 {
		return ""
	}
	return s.Interrupts[i].Folder
}

// Interrupt notes that an operation has a turn end.
func (s *Session) Interrupt(operation, folder string) {
	s.Interrupts = append(s.Interrupts, Interrupt{operation, folder})
	s.Interrupts = s.Interrupts[max(0, len(s.Interrupts)-maxInterrupts):]
}

// LeaseChange is a change of the leases, as lease_changed tells it: taken or given_back.
type LeaseChange struct {
	Change  string         `json:"change"`
	Lease   session.Lease  `json:"lease"`
	Evicted session.Leases `json:"evicted,omitempty"` // by a lease that was taken over
	At      time.Time      `json:"at"`
}

// Join notes that an execution is one of the session's.
func (s *Session) Join(folder string) {
	if !slices.Contains(s.Runs, folder) {
		s.Runs = append(s.Runs, folder)
	}
}

// Turn is an execution's place in the queue of its session.
type Turn struct {
	Folder string    `json:"folder"`
	At     time.Time `json:"at"`             // when it was ordered
	Next   bool      `json:"next,omitempty"` // it comes before all but the first
}

// Enqueue puts an execution into the queue, once. It comes before those that were ordered later, but not before the
// first whose place is not over: whose turn it is may have begun.
func (s *Session) Enqueue(t Turn, over func(folder string) bool) {
	if slices.ContainsFunc(s.Queue, func(q Turn) bool { return q.Folder == t.Folder }) {
		return
	}
	first := slices.IndexFunc(s.Queue, func(q Turn) bool { return !over(q.Folder) })
	i := len(s.Queue)
	for first >= 0 && i > first+1 && (t.Next && !s.Queue[i-1].Next || t.Next == s.Queue[i-1].Next && t.At.Before(s.Queue[i-1].At)) {
		i--
	}
	s.Queue = slices.Insert(s.Queue, i, t)
}

// Leave takes an execution out of the queue, and the places at its head that are over. An order that is about to come for one
// of these takes its place again.
func (s *Session) Leave(folder string, over func(folder string) bool) {
	s.Queue = slices.DeleteFunc(s.Queue, func(t Turn) bool { return t.Folder == folder })
	for len(s.Queue) > 0 && over(s.Queue[0].Folder) {
		s.Queue = s.Queue[1:]
	}
}

// Runtime is runtime.json: the intent to start a process, and its token.
type Runtime struct {
	Version int    `json:"version"`
	ID      string `json:"id"`
	Token   string `json:"token"`
	Folder  string `json:"folder"`
	Session string `json:"session"`
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
	BootID  string `json:"bootId"`
	Socket  string `json:"socket"`
	Spool   int64  `json:"spool,omitempty"` // bytes that may wait unacknowledged, each stream
	// Shared says that sessions may share it: then each has a fold file of its own, and who made it is just the first of them.
	Shared    bool      `json:"shared,omitempty"`
	Cwd       string    `json:"cwd,omitempty"` // of a shared one, in which it was started
	CreatedAt time.Time `json:"createdAt"`
}

// SpecFile is the path of an execution's spec.json.
func SpecFile(folder string) string { return dirOf(folder) + "/spec.json" }

// StatusFile is the path of an execution's status.json.
func StatusFile(folder string) string { return dirOf(folder) + "/status.json" }

// TextFile is the path of an execution's result text.
func TextFile(folder string) string { return dirOf(folder) + "/text" }

// SessionFile is the path of a session's session.json.
func SessionFile(id string) string { return "sessions/" + id + "/session.json" }

// JournalDir is the path of a session's journal.
func JournalDir(id string) string { return "sessions/" + id + "/journal" }

// WorkspaceFile is the path of a workspace's record.
func WorkspaceFile(id string) string { return "workspaces/" + id + ".json" }

// RuntimeFile is the path of a runtime's runtime.json.
func RuntimeFile(id string) string { return "runtimes/" + id + "/runtime.json" }

// Version is what new records say of themselves.
const Version = state.RecordVersion
