package supervisor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/config"
	"github.com/pintle/pintle/internal/policy"
	"github.com/pintle/pintle/internal/record"
	"github.com/pintle/pintle/providers"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state"
)

// Keeps refuses a policy that an agent cannot be held to exactly (X37). What is in force without the rules is in the refusal.
// rules is nil if there are none; a file without any is one all the same.
func Keeps(name string, p providers.Provider, approve, mode string, rules *policy.Policy) error {
	if err := takes(name, p, mode, approve != "" || rules != nil); err != nil {
		return err
	}
	if rules == nil {
		rules = &policy.Policy{}
	}
	force := inForce(p, approve)
	if approve != "" && p.Approves != nil && !slices.Contains(p.Approves, approve) {
		e := api.E(api.CodePolicy, "%s does what it is configured to do unasked, and cannot be held to --approve %s", name, approve)
		e.Data = map[string]any{"policy": inForce(p, "")}
		return e.WithNext("give it without --approve; its own configuration is in force then")
	}
	unkept := rules.Unkept(force.Unasked)
	if len(unkept) == 0 {
		return nil
	}
	e := api.E(api.CodePolicy, "%s uses tools of the kinds %s unasked, and cannot be held to %s",
		name, strings.Join(force.Unasked, ", "), unkept[0])
	e.Data = map[string]any{"policy": force}
	return e.WithNext("leave the rule out, or give it a kind that is not among those; claude and pi ask for all, and can be held to any")
}

// takes refuses a mode that cannot be chosen: of what is held to --approve or to rules, pintle chooses the one in which it asks.
func takes(name string, p providers.Provider, mode string, held bool) error {
	switch {
	case mode == "":
		return nil
	case !p.Modes:
		return api.E(api.CodeOptions, "%s has no modes that can be chosen", name).WithNext("give it without --mode")
	case held:
		return api.E(api.CodeOptions, "--mode leaves to %s what it asks for, and --approve and rules do not", name).
			WithNext("give one of them")
	}
	return nil
}

// rulesOf are those that came with a session, else the agent's own by configuration.
func (s *Supervisor) rulesOf(c api.CreateSession, kind string) (*policy.Policy, error) {
	p, _ := s.provider(c.Provider, kind)
	file := s.o.Config.Agents[c.Provider].Policy
	switch {
	case len(c.Policy) == 0 && file == "":
		return nil, Keeps(c.Provider, p, c.Approve, c.Mode, nil)
	case len(c.Policy) == 0:
		rules, err := config.Policy(file)
		return &rules, cmp.Or(err, Keeps(c.Provider, p, c.Approve, c.Mode, &rules))
	}
	var rules policy.Policy
	d := json.NewDecoder(bytes.NewReader(c.Policy))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules); err != nil {
		return nil, api.E(api.CodeParams, "policy: %w", err)
	}
	for i, r := range rules.Rules {
		if problem := r.Wrong(); problem != "" {
			return nil, api.E(api.CodeParams, "policy: rule %d: %s", i+1, problem)
		}
	}
	return &rules, Keeps(c.Provider, p, c.Approve, c.Mode, &rules)
}

// inForce is what holds without rules.
func inForce(p providers.Provider, approve string) (f api.Policy) {
	f.Approve = approve
	if p.Unasked != nil {
		f.Unasked = p.Unasked(approve)
	}
	return f
}

// InForce is the policy of an order, nil if the agent's own configuration is all of it.
func InForce(p providers.Provider, approve string, rules *policy.Policy) *api.Policy {
	if approve == "" && rules == nil {
		return nil
	}
	f := inForce(p, approve)
	if rules != nil {
		for _, r := range rules.Rules {
			f.Rules = append(f.Rules, r.String())
		}
	}
	return &f
}

// ruled answers what the rules, and --approve, decide on. The agent asked, and the journal has both.
func (r *run) ruled() error {
	pending := slices.DeleteFunc(r.rt.about().Pending, func(p providers.Permission) bool { return r.unruled[p.ID] })
	if len(pending) == 0 {
		return nil
	}
	rules, err := r.rules()
	if err != nil {
		return err
	}
	for _, p := range pending {
		d := rules.Decide(r.spec.Payload.Approve, r.wants(p))
		if d.Verdict == policy.Ask {
			r.unruled[p.ID] = true
			continue
		}
		a := api.Answered{Permission: p.ID, Decision: string(d.Verdict), By: d.By, Reason: d.Reason}
		if _, err := r.answer(a); err != nil {
			return err
		}
	}
	return nil
}

// mark adds to what is asked that the rules, or --approve, decide on it, so that nobody who looks on is asked. The decision
// itself is taken, and recorded, behind that.
func (r *run) mark(rt *runtime, data json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var id string
	if r.rt != rt || json.Unmarshal(data, &fields) != nil || json.Unmarshal(fields["permission"], &id) != nil {
		return data
	}
	rules, err := r.rules()
	i := slices.IndexFunc(rt.about().Pending, func(p providers.Permission) bool { return p.ID == id })
	if err != nil || i < 0 || rules.Decide(r.spec.Payload.Approve, r.wants(rt.about().Pending[i])).Verdict == policy.Ask {
		return data
	}
	fields["ruled"] = json.RawMessage("true")
	data, _ = json.Marshal(fields) // raw values: cannot fail
	return data
}

// rules are the order's, and those by which somebody has allowed things for the session.
func (r *run) rules() (all policy.Policy, err error) {
	if r.spec.Policy != nil {
		all.Rules = slices.Clone(r.spec.Policy.Rules)
	}
	s, err := state.Read[record.Session](r.s.dir, record.SessionFile(r.st.Session))
	all.Rules = append(all.Rules, s.Always...)
	cwd, home := resolved(r.st.Cwd), r.rt.env.Vars["HOME"]
	for _, rule := range slices.Clone(all.Rules) {
		if real, ok := rule.Real(cwd, home, resolved); ok {
			all.Rules = append(all.Rules, real)
		}
	}
	return all, err
}

// wants is what is asked. Each file is one under the name that the agent has for it, and one as it is behind symbolic links,
// which lead out of a directory: what is allowed must be so under both, and what is denied is under either. If one cannot be
// told, none is.
func (r *run) wants(p providers.Permission) policy.Request {
	cwd := resolved(r.st.Cwd)
	q := policy.Request{Kind: p.Kind, Tool: p.Tool, Command: p.Command, Cwd: cwd, Home: r.rt.env.Vars["HOME"]}
	for _, name := range p.Paths {
		name, ok := located(name, r.st.Cwd, q.Home)
		real, there := behind(name)
		if !ok || !there {
			q.Paths = nil
			return q
		}
		named := filepath.Clean(name)
		if rest, inside := strings.CutPrefix(named+"/", strings.TrimSuffix(r.st.Cwd, "/")+"/"); inside {
			named = filepath.Join(cwd, rest)
		}
		if q.Paths = append(q.Paths, named); real != named {
			q.Paths = append(q.Paths, real)
		}
	}
	return q
}

// always allows for the rest of the session what is asked. The rule is on record before the answer: killed between the two,
// the rule gives it.
func (r *run) always(permission, by string) error {
	i := slices.IndexFunc(r.rt.about().Pending, func(p providers.Permission) bool { return p.ID == permission })
	rule, ok := policy.Always(r.wants(r.rt.about().Pending[i]))
	if !ok {
		return api.E(api.CodeParams, "this is about files elsewhere, or %s says too little of what it wants, to be allowed for the session", r.st.Provider).
			WithNext("pintle allow " + permission)
	}
	rule.From = by
	clear(r.unruled)
	return state.Update(r.s.ctx, r.s.dir, record.SessionFile(r.st.Session), func(s *record.Session) error {
		if !slices.Contains(s.Always, rule) {
			s.Always = append(s.Always, rule)
		}
		return nil
	})
}
