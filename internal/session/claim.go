package session

// Verdict is what becomes of an order under a key that is taken.
type Verdict int

// The verdicts of Decide.
const (
	Join   Verdict = iota // it has not ended: wait for it
	Replay                // its stored result is the answer
	Begin                 // a new attempt begins
	Refuse                // the outcome of the attempt before is unknown: only retry goes past it
)

// Decide says what a repeat of an order gets. current is the number of the newest attempt that was
// ordered and ended its outcome, "" while it has not ended; wanted is the repeat's --attempt, 0 without.
//
// The rules are DESIGN's: an attempt is launched at most once; an earlier one that runs is joined, one
// that completed is replayed, one that ended otherwise makes way, one with an unknown outcome does not.
func Decide(current int, ended Outcome, wanted int) Verdict {
	switch {
	case ended == "":
		return Join
	case wanted <= current || ended == Completed:
		return Replay
	case ended == Unknown:
		return Refuse
	}
	return Begin
}
