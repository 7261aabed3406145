package api

import (
	"encoding/json"
	"time"
)

// The methods of sessions. Those that change something take an Operation beside what they name.
const (
	MethodSessCreate      = "session/create"      // CreateSession → Session, once its conversation stands
	MethodSessAttach      = "session/attach"      // Attach → Attached
	MethodSessDetach      = "session/detach"      // Detach → Detached, once the lease is gone
	MethodSessList        = "session/list"        // List → []Session
	MethodSessGet         = "session/get"         // SessionTarget → Session
	MethodSessSend        = "session/send"        // Send → Sent
	MethodSessInterrupt   = "session/interrupt"   // Interrupt → Controlled, once no turn runs
	MethodSessHistory     = "session/history"     // History → record.Rows
	MethodSessSubscribe   = "session/subscribe"   // Subscribe → Subscribed; then session/event for each event
	MethodSessUnsubscribe = "session/unsubscribe" // SessionTarget → nothing
	MethodSessRecover     = "session/recover"     // RecoverSession → Session
	NotifyEvent           = "session/event"       // an event of the journal
)

// Operation makes a request that changes something one that is carried out once (F2). All of it may be absent.
type Operation struct {
	OperationID   string          `json:"operationId,omitempty"`   // <13 digit ms>-<32 hex>
	ExpectedFence json.RawMessage `json:"expectedFence,omitempty"` // a number; null: it must not exist yet
	Fingerprint   string          `json:"fingerprint,omitempty"`   // hex SHA-256, which must agree
}

// SessionTarget names a session: its id or a unique prefix, or a run of it.
type SessionTarget struct {
	Session string `json:"session"`
}

// CreateSession opens a session. Its creator holds it with an exclusive lease (L2).
type CreateSession struct {
	Operation
	Provider    string            `json:"provider"`
	Cwd         string            `json:"cwd"`
	Model       string            `json:"model,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	Approve     string            `json:"approve,omitempty"`
	Policy      json.RawMessage   `json:"policy,omitempty"`     // {"rules":[{"deny","kind","tool","command","path","reason"}]}
	Unattended  string            `json:"unattended,omitempty"` // what is asked with nobody there; park by default, since there is a client
	AgentArgs   []string          `json:"agentArgs,omitempty"`
	Path        string            `json:"path,omitempty"`        // of the agent's program; "": as the environment's PATH has it
	Environment map[string]string `json:"environment,omitempty"` // all that the agent gets (E1)
	Secrets     []string          `json:"secrets,omitempty"`     // names among them
	Umask       *int              `json:"umask,omitempty"`       // 0077 without
	WarmMs      int64             `json:"warmMs,omitempty"`      // how long its process is kept when nobody holds it
	Restart     string            `json:"restart,omitempty"`     // never, on-demand, on-crash (R2)
	Share       bool              `json:"share,omitempty"`       // its process may serve other sessions too
}

// Session is a session as everybody sees it.
type Session struct {
	ID           string      `json:"id"`
	State        string      `json:"state"` // ready: a message can be given; else why not: parked, archived
	Provider     string      `json:"provider"`
	Cwd          string      `json:"cwd"`
	Workspace    string      `json:"workspace,omitempty"`
	Conversation string      `json:"conversation,omitempty"` // the agent's own id, once there is a turn in it
	Fence        int64       `json:"fence"`
	Ownership    Ownership   `json:"ownership"`
	Leases       []Lease     `json:"leases"`
	Queue        []Queued    `json:"queue"` // executions that have not ended, in the order of their turns
	Restart      *Restarting `json:"restart,omitempty"`
	LastSeq      uint64      `json:"lastSeq"` // no event up to now is behind it
	CreatedAt    time.Time   `json:"createdAt"`
	ArchivedAt   *time.Time  `json:"archivedAt,omitempty"`
	Next         string      `json:"next,omitempty"`
	Lease        *Lease      `json:"lease,omitempty"` // the asker's, in the answer to create
}

// Ownership is the state of a session's runtime: free, reserved, live, draining, uncertain, conflicted.
type Ownership struct {
	State   string   `json:"state"`
	Reason  string   `json:"reason,omitempty"`
	Runtime *Runtime `json:"runtime,omitempty"`
	Next    string   `json:"next,omitempty"` // the command that leads on
}

// Lease is a client's right to drive a session.
type Lease struct {
	Client     string     `json:"client"`
	Mode       string     `json:"mode"` // shared, exclusive
	Since      time.Time  `json:"since"`
	Connected  bool       `json:"connected"`
	GraceUntil *time.Time `json:"graceUntil,omitempty"` // of a client that is away
}

// Queued is an execution in the queue of its session.
type Queued struct {
	Execution  string      `json:"execution"`
	Phase      string      `json:"phase,omitempty"`
	At         time.Time   `json:"at"`
	WaitingFor *WaitingFor `json:"waitingFor,omitempty"`
}

// Restarting is what is due, or not any more, after an exit that nobody asked for (R2).
type Restarting struct {
	Policy   string     `json:"policy"`
	Count    int        `json:"count,omitempty"`    // in a row
	FailedAt *time.Time `json:"failedAt,omitempty"` // the last exit
	NextAt   *time.Time `json:"nextAt,omitempty"`
	Parked   string     `json:"parked,omitempty"` // crash_looping, and why
}

// Attach asks for a lease.
type Attach struct {
	Operation
	Session  string `json:"session"`
	Mode     string `json:"mode,omitempty"` // shared (default), exclusive
	TakeOver bool   `json:"takeOver,omitempty"`
}

// Attached answers an attach: the lease counts.
type Attached struct {
	Session string `json:"session"`
	Lease   Lease  `json:"lease"`
	Fence   int64  `json:"fence"`
	State   string `json:"state"`
	LastSeq uint64 `json:"lastSeq"`
}

// Detach gives the asker's lease back.
type Detach struct {
	Operation
	Session string `json:"session"`
}

// Detached answers a detach: the lease is gone.
type Detached struct {
	Session string `json:"session"`
	Fence   int64  `json:"fence"`
}

// Send gives a session a message. It is carried out as an execution whose key is the operation's id.
type Send struct {
	Operation
	Session     string            `json:"session"`
	Text        string            `json:"text"`
	When        string            `json:"when,omitempty"`        // queue (default), steer, interrupt
	Environment map[string]string `json:"environment,omitempty"` // all that the agent gets; without it that of the session
	Secrets     []string          `json:"secrets,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	TimeoutMs   int64             `json:"timeoutMs,omitempty"` // deadline of the turn
}

// Sent answers a send.
type Sent struct {
	Session   string   `json:"session"`
	Execution string   `json:"execution"` // asked and waited for with execution/get and execution/wait
	When      string   `json:"when"`
	Fence     int64    `json:"fence"`
	Delivery  Delivery `json:"delivery"`
}

// Delivery has the three facts of a message (F6).
type Delivery struct {
	State        string     `json:"state"` // pending, accepted, rejected, unknown
	StoredAt     *time.Time `json:"storedAt,omitempty"`
	HandedOverAt *time.Time `json:"handedOverAt,omitempty"` // to the agent's input
	ConfirmedAt  *time.Time `json:"confirmedAt,omitempty"`  // the agent named the turn
}

// RecoverSession leads out of a state that does not pass by itself (R8, R2).
type RecoverSession struct {
	Session    string `json:"session"`
	AssertDead bool   `json:"assertDead,omitempty"`
}

// Interrupt has the turn that runs end.
type Interrupt struct {
	Operation
	Session string `json:"session"`
	Reason  string `json:"reason,omitempty"`
}

// History asks for a page of what was said and done (R10). At most one of Before and After; without either the newest rows.
type History struct {
	Session string  `json:"session"`
	Tail    bool    `json:"tail,omitempty"`
	Before  *uint64 `json:"before,omitempty"`
	After   *uint64 `json:"after,omitempty"`
	Limit   int     `json:"limit,omitempty"` // of rows: 40 by default, 200 at most
	Bytes   int     `json:"bytes,omitempty"` // of rows: 1 MiB by default, 3 MiB at most
}

// Subscribe asks for the events behind a sequence, and all that come. Without After only those that come.
type Subscribe struct {
	Session string  `json:"session"`
	After   *uint64 `json:"after,omitempty"`
}

// Subscribed answers it: events up to LastSeq are behind, if After was given.
type Subscribed struct {
	Session string `json:"session"`
	LastSeq uint64 `json:"lastSeq"`
}
