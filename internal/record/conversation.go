package record

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Conversation is what an order that goes on in a session has from it.
type Conversation struct {
	Session, Provider, Cwd string
	// Refused is why nothing new goes on in it (case 28), nil if something does. A repeat is answered all the same.
	Refused error
}

// FindConversation returns the session that id names: its own id or a unique prefix, or what Find takes, for that run's.
// *api.Error: CodeNotFound, CodeAmbiguous with the candidates, CodeBusy of a run that has no session yet.
func FindConversation(d *state.Dir, id string) (Conversation, error) {
	if strings.HasPrefix(id, "s-") && session.Generated(id) {
		c, err := findSession(d, id)
		if api.CodeOf(err) != api.CodeNotFound && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	folder, err := Find(d, id)
	if err != nil {
		return Conversation{}, err
	}
	e, err := View(d, folder)
	if err != nil {
		return Conversation{}, err
	}
	return conversationOf(d, e)
}

// conversationOf is the session of a run. Its records are written a moment after the run has its id.
func conversationOf(d *state.Dir, e api.Execution) (Conversation, error) {
	switch {
	case e.Session == "" && session.Phase(e.Phase) == session.Ended:
		return Conversation{}, api.E(api.CodeNotFound, "%s has no session: it ended before it began", e.ID).
			WithNext("pintle show " + Quote(e.ID))
	case e.Session == "":
		return Conversation{}, api.E(api.CodeBusy, "%s has no session yet: its order was not taken up", e.ID).
			WithNext("pintle wait " + Quote(e.ID))
	}
	c, err := conversation(d, e.Session)
	if errors.Is(err, fs.ErrNotExist) {
		c = Conversation{Session: e.Session, Provider: e.Provider, Cwd: e.Cwd}
		if e.ResultExpired {
			c.Refused = expiredError(e.ID)
		}
		return c, nil
	}
	return c, err
}

// findSession looks among the sessions themselves, which are there longer than their runs.
func findSession(d *state.Dir, prefix string) (Conversation, error) {
	entries, err := os.ReadDir(d.Path("sessions"))
	if err != nil {
		return Conversation{}, err
	}
	var ids []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && session.Generated(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	id, err := only(prefix, ids)
	if err != nil {
		return Conversation{}, err
	}
	return conversation(d, id)
}

func conversation(d *state.Dir, id string) (Conversation, error) {
	s, err := state.Read[Session](d, SessionFile(id))
	if err != nil {
		return Conversation{}, err
	}
	w, err := state.Read[Workspace](d, WorkspaceFile(s.Workspace))
	c := Conversation{Session: s.ID, Provider: s.Provider, Cwd: w.Cwd}
	if s.ArchivedAt != nil {
		c.Refused = archivedError(id, s.Workspace)
	}
	return c, err
}
