package api

import "encoding/json"

// Hello opens a connection. Whoever says the same client id with the token that its first hello was answered with is that
// client again, on this connection too.
type Hello struct {
	Protocol    int    `json:"protocol"`
	Client      string `json:"client"` // the caller's choice: 200 characters at most, no control characters
	Version     string `json:"version"`
	ResumeToken string `json:"resumeToken,omitempty"`
	// GraceMs is how long the client outlives its last connection: 90 s if it is absent, a day at most. With 0 it ends
	// with that.
	GraceMs      *int64          `json:"graceMs,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"` // of the client; a later hello replaces them
}

// Welcome answers a hello.
type Welcome struct {
	Protocol    int    `json:"protocol"`
	Version     string `json:"version"`
	Server      string `json:"server"` // the state directory's id
	Epoch       int64  `json:"epoch"`
	ResumeToken string `json:"resumeToken"` // gets this client back, within the grace time
	Resumed     bool   `json:"resumed"`     // the client was known; false: it is new, whatever its id was before
	GraceMs     int64  `json:"graceMs"`
}

// Server is what a connection is told of the supervisor behind its hello's answer.
type Server struct {
	Protocol     int                   `json:"protocol"`
	Version      string                `json:"version"`
	Server       string                `json:"server"`
	Epoch        int64                 `json:"epoch"`
	Resumed      bool                  `json:"resumed"`
	Capabilities map[string]Capability `json:"capabilities"`
}

// Capability is something that the server can do for a client.
type Capability struct {
	Enabled bool   `json:"enabled"`
	Reason  string `json:"reason"`
}

// Closing is the last notification on a connection.
type Closing struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}
