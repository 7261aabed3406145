// Package api is the one list of what goes over the wire: methods, parameters, results, error codes and
// exit codes. It depends on the standard library alone and holds no behaviour.
package api

import (
	"encoding/json"
	"time"
)

// ProtocolVersion is the version of this list that hello names.
const ProtocolVersion = 1

// The methods. Each comment names parameters → result.
const (
	MethodHello      = "hello"               // Hello → Welcome; first on every connection
	MethodPing       = "ping"                // nothing → nothing
	MethodGoodbye    = "goodbye"             // nothing → nothing; the connection is closed then
	MethodCreate     = "execution/create"    // Create → Execution
	MethodGet        = "execution/get"       // Target → Execution
	MethodList       = "execution/list"      // List → []Execution
	MethodWait       = "execution/wait"      // Wait → Execution, once it ended or waits for somebody
	MethodStop       = "execution/stop"      // Control → Controlled, once it is proven
	MethodInterrupt  = "execution/interrupt" // Control → Controlled, once no turn runs
	MethodArchive    = "execution/archive"   // Archive → Archived, once it is done
	MethodRecover    = "execution/recover"   // Recover → Execution
	MethodAnswer     = "session/answer"      // Answer → Answered, once the answer counts
	MethodWsCreate   = "workspace/create"    // CreateWorkspace → Workspace
	MethodWsList     = "workspace/list"      // List → []Workspace
	MethodWsGet      = "workspace/get"       // Target → Workspace
	MethodWsArchive  = "workspace/archive"   // Archive → Archived
	MethodWsRestore  = "workspace/restore"   // Target → Restored
	MethodProviders  = "provider/list"       // nothing → []Provider
	MethodStatus     = "supervisor/status"   // nothing → Supervisor
	MethodSupervisor = "supervisor/stop"     // Leave → nothing
	NotifyServer     = "server/info"         // Server; the first after an accepted hello
	NotifyClosing    = "connection/closing"  // Closing
	NotifyExecution  = "execution/updated"   // Execution
)

// Target names an execution of the local controller by its key.
type Target struct {
	ID string `json:"id"`
}

// Create asks that a recorded order be carried out, and brings what no record holds: the environment's
// values. A repeat joins.
type Create struct {
	ID          string            `json:"id"`
	Environment map[string]string `json:"environment,omitempty"` // composed by the caller (E1, E2)
	Secrets     []string          `json:"secrets,omitempty"`     // names among them
}

// List chooses executions.
type List struct {
	All    bool              `json:"all,omitempty"` // archived ones too
	Labels map[string]string `json:"labels,omitempty"`
}

// Wait waits for an execution's end. A Seq is not needed: the answer is the record.
type Wait struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt,omitempty"` // the end of this one; 0: of the newest
	// Until is what is waited for: stored, handed_over, confirmed, or ended, which is the default (F6). It comes at the end too.
	Until string `json:"until,omitempty"`
	// Answers says that the asker will answer what the agent asks for meanwhile: it is left open for him, and the wait
	// goes on. Without it the answer comes when the execution waits for an approval.
	Answers bool `json:"answers,omitempty"`
}

// Usage is what a run has cost, as far as its agent tells.
type Usage struct {
	InputTokens  int64 `json:"inputTokens,omitempty"`
	OutputTokens int64 `json:"outputTokens,omitempty"`
	CachedTokens int64 `json:"cachedTokens,omitempty"`
	// USD is absent where the agent does not tell it: unknown is not 0.
	USD *float64 `json:"usd,omitempty"`
}

// Control asks for a stop or an interrupt.
type Control struct {
	Operation
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// Controlled answers a control: exactly these four (X12).
type Controlled struct {
	ExecutionID string  `json:"executionId"`
	Action      string  `json:"action"`
	Success     bool    `json:"success"`
	Error       *string `json:"error"`
}

// Archive asks for an archive, of an execution's session or of a workspace.
type Archive struct {
	Operation
	ID          string `json:"id"`
	RefuseDirty bool   `json:"refuseDirty,omitempty"` // rather than keep what git would not find again (X22)
	Reason      string `json:"reason,omitempty"`
}

// Archived answers an archive: what a control's answer has, and the report (X12).
type Archived struct {
	Controlled
	Report Report `json:"report"`
}

// Report is what became of a workspace.
type Report struct {
	Workspace  string     `json:"workspace"`
	Executions []string   `json:"executions,omitempty"` // archived with it
	ArchivedAt *time.Time `json:"archivedAt,omitempty"`
	Worktree   string     `json:"worktree,omitempty"`   // the directory of pintle's in which it was; a checkout of the user's stays as it is
	Removed    bool       `json:"removed,omitempty"`    // that directory is gone
	SharedWith []string   `json:"sharedWith,omitempty"` // workspaces that are still in it
	Kept       *Kept      `json:"kept,omitempty"`
	Cleanup    *Cause     `json:"cleanup,omitempty"` // of a clean-up that failed
	Pending    *Stuck     `json:"pending,omitempty"` // why the directory is still there
	Next       string     `json:"next,omitempty"`
}

// Kept is where what git would not find again was kept (X21).
type Kept struct {
	Ref          string   `json:"ref,omitempty"`
	Commit       string   `json:"commit,omitempty"`
	State        []string `json:"state,omitempty"`   // operations in progress
	Changed      int      `json:"changed,omitempty"` // files: changed, staged or untracked
	Files        []string `json:"files,omitempty"`   // ignored files that were kept, in the state directory
	Ignored      []string `json:"ignored,omitempty"` // ignored files and directories/ that were not, the first of them
	IgnoredCount int      `json:"ignoredCount,omitempty"`
}

// Stuck is why a directory could not be removed, and what becomes of it.
type Stuck struct {
	Code    Code      `json:"code"` // workspace_busy, worktree_locked, or internal
	Message string    `json:"message"`
	Tries   int       `json:"tries"`
	At      time.Time `json:"at"` // of the last try
}

// CreateWorkspace asks for a workspace without a session. ID is the caller's choice, w- and 16 hex digits: a repeat makes
// no second one.
type CreateWorkspace struct {
	ID   string          `json:"id"`
	Cwd  string          `json:"cwd"`
	Tree json.RawMessage `json:"tree,omitempty"` // a spec's tree
}

// Workspace is a directory that a session works in, or may.
type Workspace struct {
	ID         string     `json:"id"`
	Cwd        string     `json:"cwd"`
	Session    string     `json:"session,omitempty"`
	Repository string     `json:"repository,omitempty"`
	Worktree   string     `json:"worktree,omitempty"` // root of the worktree of pintle's that it is in
	Branch     string     `json:"branch,omitempty"`
	Base       string     `json:"base,omitempty"`
	Head       string     `json:"head,omitempty"`
	CreatedAt  *time.Time `json:"createdAt,omitempty"`
	ArchivedAt *time.Time `json:"archivedAt,omitempty"`
	Report     *Report    `json:"report,omitempty"`
	Progress   *Progress  `json:"progress,omitempty"` // of an archive that is under way
}

// Progress is how much has been kept so far.
type Progress struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Restored answers a restore. Notes say what could not be as it was.
type Restored struct {
	Workspace
	Notes []string `json:"notes,omitempty"`
}

// Recover ends an ownership that could not be decided (R8).
type Recover struct {
	Operation
	ID         string `json:"id"`
	AssertDead bool   `json:"assertDead,omitempty"`
}

// Leave asks a supervisor to go. Runtimes are left to their shims unless Runtimes is set.
type Leave struct {
	Runtimes bool `json:"runtimes,omitempty"`
}

// Execution is a run as everybody sees it. What is absent is left out; fields are only added.
type Execution struct {
	ID           string          `json:"id"`
	Controller   string          `json:"controller"`
	Session      string          `json:"session,omitempty"`
	Provider     string          `json:"provider"`
	AgentVersion string          `json:"agentVersion,omitempty"`
	Model        string          `json:"model,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Phase        string          `json:"phase"`
	Outcome      string          `json:"outcome,omitempty"`
	ExitCode     *int            `json:"exitCode,omitempty"`
	Text         *string         `json:"text,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	Cause        *Cause          `json:"cause,omitempty"`
	Replayed     bool            `json:"replayed,omitempty"`
	// ResultExpired says that gc has left no more of it than that its key never launches again (X36).
	ResultExpired bool              `json:"resultExpired,omitempty"`
	Attempt       int               `json:"attempt"`
	Attempts      []Attempt         `json:"attempts,omitempty"`
	Fence         int64             `json:"fence,omitempty"`
	Delivery      *Delivery         `json:"delivery,omitempty"` // of its prompt
	Cwd           string            `json:"cwd"`
	Workspace     string            `json:"workspace,omitempty"`
	Worktree      string            `json:"worktree,omitempty"`
	Branch        string            `json:"branch,omitempty"`
	Base          string            `json:"base,omitempty"`
	Head          string            `json:"head,omitempty"`
	Changes       *Changes          `json:"changes,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	CreatedAt     time.Time         `json:"createdAt"`
	StartedAt     *time.Time        `json:"startedAt,omitempty"`
	EndedAt       *time.Time        `json:"endedAt,omitempty"`
	ArchivedAt    *time.Time        `json:"archivedAt,omitempty"`
	Usage         *Usage            `json:"usage,omitempty"`
	Policy        *Policy           `json:"policy,omitempty"`      // in force; absent: the agent's own configuration
	Permissions   []Permission      `json:"permissions,omitempty"` // pending
	WaitingFor    *WaitingFor       `json:"waitingFor,omitempty"`
	Next          string            `json:"next,omitempty"`
	Owner         *Owner            `json:"owner,omitempty"` // of one that has not ended, as show tells it
	Runtime       *Runtime          `json:"runtime,omitempty"`
	Cancel        *Cancel           `json:"cancel,omitempty"`
}

// Cause is why an execution did not complete, or, for a command, its exit status.
type Cause struct {
	Code        string     `json:"code,omitempty"`
	Message     string     `json:"message,omitempty"` // at most 2,000 characters
	Status      *int       `json:"status,omitempty"`  // of a command
	Signal      string     `json:"signal,omitempty"`  // that ended a command
	Retryable   bool       `json:"retryable,omitempty"`
	Disposition string     `json:"disposition,omitempty"`
	Try         int        `json:"try,omitempty"`
	NextTryAt   *time.Time `json:"nextTryAt,omitempty"`
}

// Attempt is an earlier attempt of an execution.
type Attempt struct {
	Attempt   int        `json:"attempt"`
	Outcome   string     `json:"outcome"`
	ExitCode  int        `json:"exitCode"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Changes is what a run changed in its worktree.
type Changes struct {
	Files      int `json:"files"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`
}

// WaitingFor says for whom or what an execution waits.
type WaitingFor struct {
	Kind   string     `json:"kind"` // needs_env, needs_approval, session, limit, retry, space, uncertain, crash_looping
	Names  []string   `json:"names,omitempty"`
	Detail string     `json:"detail,omitempty"`
	Until  *time.Time `json:"until,omitempty"` // when it goes on by itself; from show also when its deadline ends it
}

// Owner says who drives an execution: a supervisor; its shim alone, which starts a supervisor; nobody, until a verb starts
// one; or that it is uncertain, since its shim lives and does not answer, or cannot be told from its records.
type Owner struct {
	Kind  string `json:"kind"` // supervisor, shim, nobody, uncertain
	PID   int    `json:"pid,omitempty"`
	Epoch int64  `json:"epoch,omitempty"` // of a supervisor
}

// Runtime is the process of a live execution.
type Runtime struct {
	ID         string `json:"id"`
	PID        int    `json:"pid,omitempty"`
	PGID       int    `json:"pgid,omitempty"`
	StartTicks uint64 `json:"startTicks,omitempty"`
	BootID     string `json:"bootId"`
}

// Cancel holds the three facts of a cancel (K5).
type Cancel struct {
	Attempt      int        `json:"attempt,omitempty"`
	Action       string     `json:"action"` // stop, interrupt
	Reason       string     `json:"reason,omitempty"`
	RequestedAt  time.Time  `json:"requestedAt"`
	DispatchedAt *time.Time `json:"dispatchedAt,omitempty"`
	ConfirmedAt  *time.Time `json:"confirmedAt,omitempty"`
}

// Provider is an agent that could be used.
type Provider struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	Reason  string `json:"reason,omitempty"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Looked  string `json:"looked,omitempty"` // where it was looked for, if it was not found
}

// Supervisor is the state of a state directory's supervisor.
type Supervisor struct {
	Running   bool             `json:"running"`
	Frozen    bool             `json:"frozen,omitempty"` // it holds its lock and does not answer
	PID       int              `json:"pid,omitempty"`
	Epoch     int64            `json:"epoch,omitempty"`
	Socket    string           `json:"socket,omitempty"`
	Version   string           `json:"version,omitempty"`
	StartedAt *time.Time       `json:"startedAt,omitempty"`
	Sessions  int              `json:"sessions"`
	Runtimes  []RuntimeSummary `json:"runtimes"`
}

// RuntimeSummary is a runtime as supervisor/status tells it.
type RuntimeSummary struct {
	ID         string    `json:"id"`
	ShimPID    int       `json:"shimPid"`
	PID        int       `json:"pid,omitempty"`
	PGID       int       `json:"pgid,omitempty"`
	StartTicks uint64    `json:"startTicks,omitempty"`
	BootID     string    `json:"bootId,omitempty"`
	StartedAt  time.Time `json:"startedAt"`
	Sessions   []string  `json:"sessions"`
}
