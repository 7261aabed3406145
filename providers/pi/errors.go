package pi

import (
	"regexp"
	"strconv"
	"strings"
)

// status finds the status of the model's server: errors begin with it, or have it in parentheses behind the name of the API.
var status = regexp.MustCompile(`^(?:[\w -]+ API error \()?([45]\d\d)\b`)

// cause is the typed cause (B1) of the model's error, of which pi has the words alone.
func cause(message string) string {
	lower := strings.ToLower(message)
	found := status.FindStringSubmatch(message)
	if found == nil {
		return phrased(lower)
	}
	switch code, _ := strconv.Atoi(found[1]); {
	case code == 401 || code == 403:
		return "auth"
	case code == 429 || code == 529:
		return "capacity"
	case code == 402 || code == 404 || code == 413:
		return "config"
	case code == 408 || code >= 500:
		return "transient"
	}
	return phrased(lower)
}

// phrases are causes by what an error says, the first that it does. A request that is invalid otherwise, or an answer that was
// withheld, has none: it would be so again.
var phrases = []struct{ words, cause string }{
	{"rate limit", "capacity"}, {"too many requests", "capacity"}, {"overloaded", "capacity"}, {"at capacity", "capacity"},
	{"high demand", "capacity"}, {"quota", "capacity"}, {"usage limit", "capacity"}, {"billing", "capacity"},
	{"too long", "config"}, {"context length", "config"}, {"context_length", "config"}, {"context window", "config"},
	{"too many tokens", "config"}, {"token limit", "config"}, {"maximum prompt length", "config"}, {"exceeds the limit of", "config"},
	{"request_too_large", "config"}, {"model not found", "config"}, {"model_not_found", "config"},
	{"api key", "auth"}, {"unauthorized", "auth"}, {"authentication", "auth"}, {"credentials", "auth"}, {"/login", "auth"},
	{"terminated", "transient"}, {"connection", "transient"}, {"fetch failed", "transient"}, {"socket", "transient"}, {"network", "transient"},
	{"econn", "transient"}, {"etimedout", "transient"}, {"getaddrinfo", "transient"}, {"timed out", "transient"}, {"timeout", "transient"},
	{"stream", "transient"}, {"server error", "transient"}, {"internal error", "transient"}, {"unavailable", "transient"},
}

func phrased(lower string) string {
	for _, p := range phrases {
		if strings.Contains(lower, p.words) {
			return p.cause
		}
	}
	return ""
}

// refusalCause is that of a prompt that was not taken.
func refusalCause(message string) string {
	if phrased(strings.ToLower(message)) == "auth" {
		return "auth"
	}
	return "config"
}
