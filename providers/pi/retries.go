package pi

import (
	"cmp"
	"fmt"

	"github.com/pintle/pintle/providers/wire"
)

// retry is what pi tells of a request that it makes again, of a summary that it makes of the conversation, or of an error of an
// extension's.
type retry struct {
	Attempt   int
	Most      int  `json:"maxAttempts"`
	Why       word `json:"errorMessage"`
	Reason    word
	Extension word `json:"extensionPath"`
}

// troubled tells what pi has trouble with, and what it does about it.
func (f *fold) troubled(r record) {
	switch r.Type {
	case "auto_retry_start", "summarization_retry_scheduled":
		f.retries(r.retry)
	case "auto_retry_end", "summarization_retry_finished":
		f.Trouble = ""
	case "compaction_start":
		f.Notice("pi makes a summary of the conversation: " + compactions[string(r.Reason)])
	case "compaction_end":
		f.spend(r.Result.Usage)
		if r.Why != "" {
			f.Notice("pi could not make a summary of the conversation: " + string(r.Why))
		}
	case "extension_error":
		f.Notice(fmt.Sprintf("an extension of pi's failed: %s (%s)", r.Error, wire.Clip(string(r.Extension), wire.IDLimit)))
	}
}

// compactions are why it does.
var compactions = map[string]string{
	"manual": "it was asked for", "threshold": "it has grown long", "overflow": "it is too long for the model",
}

// retries tells that pi asks the model again.
func (f *fold) retries(r retry) {
	why := fmt.Sprintf("%s; pi tries it again, %d of %d", wire.Clip(string(r.Why), wire.WordsLimit/2), r.Attempt, r.Most)
	f.Tell("agent_notice", map[string]any{"message": why, "cause": cmp.Or(cause(string(r.Why)), "transient"), "willRetry": true})
	if f.ours() {
		f.Trouble = why
	}
}
