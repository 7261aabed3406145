package supervisor

import "github.com/pintle/pintle/providers"

// unattended answers what the agent asks for with nobody there, as ordered.
func (r *run) unattended() error {
	d := providers.Fail
	if r.spec.Payload.Unattended == "deny" {
		d = providers.Deny
	}
	for _, p := range r.rt.about().Pending {
		if err := r.answer(p.ID, d, "unattended"); err != nil {
			return err
		}
	}
	return nil
}

// answer has an answer count. It is on record before the agent hears it (R11).
func (r *run) answer(permission string, d providers.Decision, by string) error {
	err := r.rt.note(true, event("permission_resolved", map[string]any{"permission": permission, "decision": d, "by": by}))
	if err != nil {
		return err
	}
	if a, ok := r.rt.fold.(providers.Agent); ok {
		r.rt.outbox = append(r.rt.outbox, a.Answer(permission, d)...)
		r.rt.flush()
	}
	return nil
}
