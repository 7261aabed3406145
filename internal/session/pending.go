package session

// The methods that meet one another on a session (L11), as rpc/api names them.
const (
	methodSend      = "session/send"
	methodInterrupt = "session/interrupt"
	methodAttach    = "session/attach"
	methodDetach    = "session/detach"
)

// Gone stands for the end of a client (goodbye, or its grace is over) among the methods.
const Gone = "client gone"

// Pending is a client's operation on a session that has no answer yet.
type Pending struct {
	Client    string
	Method    string
	Operation string
}

// Meeting is what becomes of a request that finds an operation pending.
type Meeting string

// The meetings.
const (
	Passes  Meeting = "passes"  // they are nothing to one another, or it may overtake
	Joins   Meeting = "joins"   // it is the same once more: it gets the answer of the pending one
	Cancels Meeting = "cancels" // the pending one is ended and leaves nothing, then it is carried out
	Follows Meeting = "follows" // it waits for the end of the pending one
	Blocked Meeting = "blocked" // refused as busy, with the name of the pending one
)

// Meets says what becomes of next while p is pending on the same session (L11). Two detaches are one,
// though each has an operation id of its own (L3). The end of a client is nothing that can be refused: it
// waits for a write that was begun.
func (p Pending) Meets(next Pending) Meeting {
	switch {
	case p.Client != next.Client || Overtakes(p.Method, next.Method):
		return Passes
	case p.Operation != "" && p.Operation == next.Operation && p.Method == next.Method:
		return Joins
	case p.Method == methodDetach && ends(next.Method):
		return Joins
	case p.Method == methodAttach && ends(next.Method):
		return Cancels
	case next.Method == Gone:
		return Follows
	}
	return Blocked
}

// Overtakes reports whether second may be carried out while first, of the same client, is pending: only an
// interrupt overtakes a send.
func Overtakes(first, second string) bool {
	return first == methodSend && second == methodInterrupt
}

func ends(method string) bool { return method == methodDetach || method == Gone }
