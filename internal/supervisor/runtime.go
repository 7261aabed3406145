package supervisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/pintle/pintle/internal/crash"
	"github.com/pintle/pintle/internal/environ"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
	"github.com/pintle/pintle/state/journal"
)

// runtime is a supervisor's side of one agent's process: it takes the spools into the journal.
type runtime struct {
	r        *run
	control  line // nil while no shim is held
	shimPID  int  // 0 if adopted
	book     *book
	provider providers.Provider
	fold     providers.Fold
	mask     *environ.Masker
	env      environ.Environment // that the agent was started with
	tenure   *tenure             // whose it is, as fold.json says
	order    providers.Order     // the newest that was given to it
	shared   bool                // other sessions may have a part in the process
	skipping bool                // in the middle of a line that is too long, where others may have it
	long     []byte              // beginning and end of that
	left     bool                // the session has left it to them
	welcomed bool                // others may come into it

	at         journal.Commit // taken in up to here
	checkpoint int64          // bytes taken in at the last checkpoint
	every      int64          // bytes from one checkpoint to the next
	text       record.Tail
	outbox     []providers.Frame // for the agent's input, in order; the first is being written if writing
	writing    bool
	resolved   map[string]api.Answered // permissions of this turn whose answer is in the journal
	gone       bool                    // its end is in the journal: it may have been told with another verdict, that did not come to be
	used       providers.Usage         // what the turn has cost, as the journal says; for who was not there
	lively     bool                    // something that is a sign of life was taken in since it was looked at
	broken     error                   // why the agent's output cannot be followed any more
	partial    bool                    // text does not hold what an earlier supervisor took in
	buf        []byte
}

const (
	// readSize is how much of a spool is taken in at once, in bytes.
	readSize = 256 << 10
	// checkpointEvery is after how many bytes the shim may drop what was taken in; sooner if its spool is small.
	checkpointEvery = 4 << 20
	// rebootSkip is added to sequences after a reboot: what was told and not synced is gone.
	rebootSkip = 1_000_000
)

// openRuntime opens the journal of the run's session and finds where its runtime's output was taken in to.
func (r *run) openRuntime(env environ.Environment) (*runtime, error) {
	provider, ok := r.s.provider(r.st.Provider, r.st.Kind)
	if !ok {
		return nil, fmt.Errorf("no agent called %s", r.st.Provider)
	}
	b, err := r.s.openBook(r.st.Session)
	if err != nil {
		return nil, err
	}
	r.s.settleIn(r.st.Session, env, provider.Stdin)
	rt := &runtime{r: r, book: b, provider: provider, mask: environ.NewMasker(env.SecretValues()), env: env, resolved: map[string]api.Answered{}}
	rt.shared = r.founds != nil || r.s.isShared(r.st.RuntimeID)
	rt.spool(int64(r.s.o.Config.Limits.Spool))
	rt.at = b.commit(r.st.RuntimeID)
	rt.partial = rt.at.Out > 0
	rt.text.All = provider.Stdin
	if b.isNew() {
		err = rt.note(false, event("session_created", map[string]any{"workspace": r.st.Workspace, "cwd": r.st.Cwd}))
	}
	if err == nil {
		err = rt.restore()
	}
	if err != nil {
		rt.release()
		return nil, err
	}
	return rt, nil
}

// spool has checkpoints come often enough for a spool of that limit: an agent that is held up by it waits for one.
func (rt *runtime) spool(limit int64) {
	rt.every = checkpointEvery
	if limit > 0 {
		rt.every = min(rt.every, limit/4)
	}
}

// folded is fold.json: the fold's state, and the output that it has seen.
type folded struct {
	Version int       `json:"version"`
	Out     int64     `json:"out"`
	Err     int64     `json:"err"`
	State   jsonState `json:"state,omitempty"`
	// Outbox are the frames that had not been written to the agent: a shim that has one answers it as written.
	Outbox []providers.Frame `json:"outbox,omitempty"`
	// Tenure says whose the process is by now; without it, it is the one's that runtime.json names.
	Tenure *tenure `json:"tenure,omitempty"`
}

// restore brings the fold to where the journal's last commit is: from the last checkpoint, by folding what
// lies between for its state alone.
func (rt *runtime) restore() error {
	f, err := state.Read[folded](rt.r.s.dir, rt.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if rt.fold, err = rt.provider.New([]byte(f.State)); err != nil {
		return fmt.Errorf("restore the state of the agent's protocol: %w", err)
	}
	rt.outbox, rt.tenure = f.Outbox, f.Tenure
	rt.checkpoint = rt.at.Out + rt.at.Err
	to := rt.at
	if rt.shared && f.Version == 0 {
		to.Out, to.Err = 0, 0 // what is committed is of a part that the session had before, and left
	}
	rt.at.Out, rt.at.Err = f.Out, f.Err
	for stream, end := range map[providers.Stream]int64{providers.Stdout: to.Out, providers.Stderr: to.Err} {
		if len(f.State) == 0 && f.Version == 0 && rt.provider.Journalled {
			continue // a fold without state has nothing to replay
		}
		if err := rt.replay(stream, end); err != nil {
			return err
		}
	}
	// A commit comes with an event: what was taken in after it, and said nothing, is in the checkpoint alone.
	rt.at.Out, rt.at.Err = max(to.Out, f.Out), max(to.Err, f.Err)
	return nil
}

func (rt *runtime) replay(stream providers.Stream, end int64) error {
	for *rt.offset(stream) < end {
		n, _, err := rt.next(stream, end, true)
		if err != nil || n == 0 {
			return err
		}
		*rt.offset(stream) += int64(n)
	}
	return nil
}

func (rt *runtime) offset(stream providers.Stream) *int64 {
	if stream == providers.Stderr {
		return &rt.at.Err
	}
	return &rt.at.Out
}

// take takes a stream in up to its end, in appends that are whole. final says that nothing more comes.
func (rt *runtime) take(stream providers.Stream, end int64, final bool) error {
	for *rt.offset(stream) < end {
		n, events, err := rt.next(stream, end, final)
		if errors.Is(err, errFrame) {
			rt.broken = err // the ladder ends it
		}
		if errors.Is(err, shim.ErrGap) || errors.Is(err, errFrame) {
			return rt.lose(stream, end, err)
		}
		if err != nil || n == 0 {
			return err
		}
		commit := rt.at
		if stream == providers.Stderr {
			commit.Err += int64(n)
		} else {
			commit.Out += int64(n)
		}
		if err := rt.append(commit, false, events...); err != nil {
			return err
		}
		rt.flush()
		rt.welcome()
		if err := rt.check(); err != nil {
			return err
		}
	}
	return nil
}

// errFrame is a frame over the limit (D3): what the agent means by it is not known, and nothing after it is either.
var errFrame = errors.New("frame too large")

// next folds what can be folded of one read; n is the number of bytes that this consumes. A frame that is longer than
// the buffer has the buffer grow, up to the limit of frames.
func (rt *runtime) next(stream providers.Stream, end int64, final bool) (n int, events []journal.Event, err error) {
	limit := max(readSize, int(rt.r.s.o.Config.Limits.FrameBytes))
	for size := readSize; ; size = min(2*size, limit) {
		n, events, err = rt.foldUpTo(stream, end, final, size)
		if n > 0 || err != nil || *rt.offset(stream)+int64(size) >= end {
			return n, events, err
		}
		if size == limit && rt.shared && stream == providers.Stdout {
			rt.skipping, rt.long = true, slices.Clone(rt.buf[:longEnd]) // at its end it may show that it is a sibling's
			continue
		}
		if size == limit {
			return 0, nil, fmt.Errorf("%w: over %d bytes", errFrame, limit)
		}
	}
}

// foldUpTo folds the whole frames of one read of at most size bytes.
func (rt *runtime) foldUpTo(stream providers.Stream, end int64, final bool, size int) (n int, events []journal.Event, err error) {
	if len(rt.buf) < size {
		rt.buf = make([]byte, size)
	}
	at := *rt.offset(stream)
	got, err := rt.read(stream, at, rt.buf[:min(int64(size), end-at)])
	if err != nil {
		return 0, nil, err
	}
	raw := rt.buf[:got]
	if rt.skipping && stream == providers.Stdout {
		n, events = rt.skip(raw)
		return n, events, nil
	}
	last := final && at+int64(got) == end
	for n < len(raw) {
		length := rt.frame(stream, raw[n:], last)
		if length == 0 {
			break
		}
		if line := raw[n : n+length]; !rt.siblings(stream, line) {
			events = append(events, rt.receive(providers.Chunk{Stream: stream, Offset: at + int64(n), Data: rt.mask.Bytes(line)})...)
		}
		n += length
	}
	return n, events, nil
}

// receive gives the fold one frame.
func (rt *runtime) receive(c providers.Chunk) (events []journal.Event) {
	before := rt.about().Message
	said, frames := rt.fold.Receive(c)
	rt.outbox = append(rt.outbox, frames...)
	if rt.about().Message != before {
		rt.text.Reset()
	}
	for _, e := range said {
		if e.Type == "permission_requested" {
			rt.r.s.noteAsked(rt.r.folder, rt.about().Pending)
			e.Data = rt.r.mark(rt, e.Data)
		}
		rt.lively = rt.lively || e.Type != "agent_notice" // that it tries once more is no sign of life
		events = append(events, journal.Event{Type: e.Type, Data: e.Data})
		if e.Type == "agent_message_chunk" {
			b, _, _ := session.Heard(e.Data) // as the fold made it
			rt.text.Add(b)
		}
	}
	return events
}

// read fills p from the spool, over the ends of its files.
func (rt *runtime) read(stream providers.Stream, at int64, p []byte) (got int, err error) {
	dir := rt.r.s.dir.Path(shim.SpoolDir(rt.at.Runtime))
	for got < len(p) {
		n, err := shim.ReadSpool(dir, string(stream), at+int64(got), p[got:])
		got += n
		if errors.Is(err, io.EOF) || (err == nil && n == 0) {
			break
		}
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// frame is the length of the first frame in raw that cuts no secret in two, 0 if more must come first (E5).
func (rt *runtime) frame(stream providers.Stream, raw []byte, last bool) int {
	n := rt.provider.Split(stream, raw, last)
	if n == 0 || rt.provider.Stdin {
		return n // a message of a protocol is masked as a whole; a secret's newline is none of it
	}
	if n == len(raw) && last {
		return n
	}
	if held := rt.mask.Held(raw[:n]); held < n {
		return n - held
	}
	return len(raw) - rt.mask.Held(raw)
}

// lose notes that output is gone that nobody had taken in, and goes on behind it.
func (rt *runtime) lose(stream providers.Stream, end int64, why error) error {
	lost := event("output_lost", map[string]any{"stream": stream, "bytes": end - *rt.offset(stream), "why": why.Error()})
	commit := rt.at
	if stream == providers.Stderr {
		commit.Err = end
	} else {
		commit.Out = end
	}
	return rt.append(commit, true, lost)
}

// note appends events that take nothing from a spool.
func (rt *runtime) note(durable bool, events ...journal.Event) error {
	return rt.append(rt.at, durable, events...)
}

func (rt *runtime) append(commit journal.Commit, durable bool, events ...journal.Event) error {
	for i := range events {
		e := &events[i]
		e.Session, e.Execution, e.Fence = rt.r.st.Session, rt.r.st.ID, rt.r.st.Fence
		e.Turn = fmt.Sprintf("t%d", rt.r.st.Attempt)
	}
	if err := rt.book.append(events, commit, durable); err != nil {
		return err
	}
	rt.at = commit
	return nil
}

// check makes a checkpoint when enough was taken in: the journal is on disk to here, then the fold's state,
// and only then may the shim drop its copy.
func (rt *runtime) check() error {
	taken := rt.at.Out + rt.at.Err
	if taken-rt.checkpoint < rt.every {
		return nil
	}
	if err := rt.book.w.Sync(); err != nil {
		return err
	}
	crash.At("supervisor.checkpoint")
	if err := rt.save(); err != nil {
		return err
	}
	crash.At("supervisor.checkpointed")
	rt.checkpoint = taken
	if rt.control != nil {
		_ = rt.control.Ack(rt.at.Out, rt.at.Err) // a shim that has gone needs none
	}
	return nil
}

// file is where the fold is written down.
func (rt *runtime) file() string {
	if rt.shared {
		return partFile(rt.at.Runtime, rt.r.st.Session)
	}
	return foldFile(rt.at.Runtime)
}

// save writes the fold down.
func (rt *runtime) save() error {
	return state.Put(rt.r.s.ctx, rt.r.s.dir, rt.file(), folded{
		Version: record.Version, Out: rt.at.Out, Err: rt.at.Err, State: jsonState(rt.fold.State()), Outbox: rt.outbox, Tenure: rt.tenure,
	})
}

// release lets go of shim and journal; the shim goes on.
func (rt *runtime) release() {
	if rt.control != nil {
		rt.control.Close()
	}
	if err := rt.book.close(); err != nil {
		rt.r.s.log.Printf("session %s: %v", rt.r.st.Session, err)
	}
}

// jsonState is a fold's state in its record.
type jsonState []byte

// MarshalJSON writes the state as it is.
func (s jsonState) MarshalJSON() ([]byte, error) {
	if len(s) == 0 {
		return []byte("null"), nil
	}
	return s, nil
}

// UnmarshalJSON keeps the state as it is.
func (s *jsonState) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		*s = append((*s)[:0], b...)
	}
	return nil
}
