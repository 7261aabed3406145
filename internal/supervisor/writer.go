package supervisor

import "github.com/pintle/pintle/providers"

// endsOwnWriter ends what is left of ours and still has the conversation.
func (r *run) endsOwnWriter(providers.About) bool { return false }
