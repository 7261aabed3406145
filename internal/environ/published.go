package environ

import (
	"path"
	"slices"
	"strings"
)

// storable are the names whose values a record may hold (E4): they say where things are and in which
// language, and none of them is a credential.
var storable = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP",
	"CODEX_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
	"LANG", "LC_*", "TZ",
}

// connection are the proxies and certificate stores. They pass, but a proxy's URL may hold a password,
// so that their values are never stored.
var connection = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
}

// own are the variables that pintle itself gives an agent (E3). Nobody else sets them: a forged
// PINTLE_SESSION or PINTLE_RUNTIME would make a sweep or a verb act on another's run.
var own = []string{"PINTLE_HOME", "PINTLE_EXECUTION", "PINTLE_SESSION", "PINTLE_RUNTIME"}

// ownPrefix is ours as a whole on the host's side: what configured the calling verb is not the agent's.
const ownPrefix = "PINTLE_"

// Published returns the names and globs that every agent inherits from the caller (E1), in the order
// of docs/environment.md.
func Published() []string {
	return slices.Concat(storable, connection)
}

// Own returns the names that pintle sets last and that nobody can override (E3).
func Own() []string {
	return slices.Clone(own)
}

// matches reports whether one of the patterns names name. A malformed pattern matches nothing here;
// Policy.Check refuses it before a run is made.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// secretWords are what the upper-cased name of a variable holds when its value is a secret (E5).
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"}

// secretByName reports whether the name of a variable says that its value is a secret.
func secretByName(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) })
}
