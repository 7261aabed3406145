package pi

import "testing"

func TestCause(t *testing.T) {
	for message, want := range map[string]string{
		`401: {"error":"no"}`:                         "auth",
		"OpenAI API error (403): no":                  "auth",
		"429 rate limited":                            "capacity",
		"529: overloaded":                             "capacity",
		"402: pay":                                    "config",
		"404: no such model":                          "config",
		"413: too large":                              "config",
		"408: late":                                   "transient",
		"503: down":                                   "transient",
		"400: invalid request":                        "",
		"400: prompt is too long":                     "config",
		"terminated: other side closed":               "transient",
		"fetch failed":                                "transient",
		"Usage limit reached":                         "capacity",
		"No API key found for openai":                 "auth",
		"finish_reason: content_filter":               "",
		"the 500 words that I was asked for are long": "",
		"": "",
	} {
		if got := cause(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
