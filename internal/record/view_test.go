package record

import (
	"errors"
	"os"
	"testing"

	"github.com/pintle/pintle/internal/proc"
	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/internal/shim"
	"github.com/pintle/pintle/state"
)

func TestCase18_ViewNeverTakesTheUnreadableForAbsent(t *testing.T) {
	boot, err := proc.BootID()
	if err != nil {
		t.Fatal(err)
	}
	const newer = `{"version":99}`
	for name, c := range map[string]struct {
		boot  string
		alive bool
		files map[string]string
		want  error
	}{
		"agent.json, the shim dead":       {boot, false, map[string]string{shim.AgentFile("x"): ""}, state.ErrDamaged},
		"agent.json, newer":               {boot, false, map[string]string{shim.AgentFile("x"): newer}, state.ErrNewer},
		"agent.json, the shim alive":      {boot, true, map[string]string{shim.AgentFile("x"): ""}, nil},
		"exit.json, the shim dead":        {boot, false, map[string]string{shim.ExitFile("x"): `{"version":1,"co`}, state.ErrDamaged},
		"exit.json, the shim alive":       {boot, true, map[string]string{shim.ExitFile("x"): ""}, state.ErrDamaged},
		"exit.json, newer":                {boot, true, map[string]string{shim.ExitFile("x"): newer}, state.ErrNewer},
		"exit.json, another boot":         {"other", false, map[string]string{shim.ExitFile("x"): ""}, state.ErrDamaged},
		"neither is there, the shim dead": {boot, false, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			folder := claim(t, d, "r-0123456789abcdef", 0).Folder
			become(t, d, folder, func(st *Status) {
				st.Phase, st.RuntimeID, st.BootID, st.Session = string(session.Running), "x", c.boot, "s-0123456789abcdef"
			})
			if err := d.Mkdir("runtimes", "x"); err != nil {
				t.Fatal(err)
			}
			for path, text := range c.files {
				if err := os.WriteFile(d.Path(path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.alive {
				unlock, err := shim.Dead(d, "x") // as a shim holds it
				if err != nil {
					t.Fatal(err)
				}
				defer unlock()
			}
			if e, err := View(d, folder); !errors.Is(err, c.want) {
				t.Errorf("%s, %v; want %v", e.Phase, err, c.want)
			}
			if rows, err := List(d); err != nil || len(rows) != 1 || !errors.Is(rows[0].Err, c.want) {
				t.Errorf("listed as %+v, %v; want %v", rows, err, c.want)
			}
			if found, err := Find(d, "s-01234"); err != nil || found != folder {
				t.Errorf("its session is found in %q, %v", found, err)
			}
		})
	}
}
