package claude

import (
	"cmp"
	"encoding/json"
)

// Probe are the arguments of a command that tells, without a prompt, whether somebody has signed in. It asks no server: a
// key that is refused counts as one, and a helper for keys is not run.
var Probe = []string{"auth", "status", "--json"}

// Signed is what Probe has said: whether somebody has signed in, and how. ok is false if it has said nothing of it.
func Signed(output []byte) (in bool, how string, ok bool) {
	var s struct {
		LoggedIn                                                *bool
		AuthMethod, APIProvider, APIKeySource, SubscriptionType string
	}
	if json.Unmarshal(output, &s) != nil || s.LoggedIn == nil {
		return false, "", false
	}
	switch {
	case !*s.LoggedIn:
	case s.AuthMethod == "third_party":
		how = s.APIProvider
	case s.SubscriptionType != "":
		how = s.AuthMethod + " " + s.SubscriptionType
	default:
		how = cmp.Or(s.APIKeySource, s.AuthMethod)
	}
	return *s.LoggedIn, how, true
}
