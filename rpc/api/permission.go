package api

import "time"

// Answer answers a permission. ID is an execution's, with just one pending, or the permission's own.
type Answer struct {
	Operation
	ID       string `json:"id"`
	Decision string `json:"decision"`         // allow or deny
	By       string `json:"by,omitempty"`     // who answers, for the record
	Always   bool   `json:"always,omitempty"` // allow it for the rest of the session
}

// Answered is the answer that counts (R11). A refusal with already_resolved has the winner in its data.
type Answered struct {
	Permission string    `json:"permission"`
	Execution  string    `json:"execution"`
	Decision   string    `json:"decision"`
	By         string    `json:"by"`
	At         time.Time `json:"at"`
	Operation  string    `json:"operation,omitempty"` // by which it was given
	Reason     string    `json:"reason,omitempty"`    // of the rule that denied it
}

// Permission is what an agent asks for and nobody has answered.
type Permission struct {
	ID       string    `json:"id"`
	ToolCall string    `json:"toolCall,omitempty"`
	Title    string    `json:"title"` // as in "to run ls"
	Kind     string    `json:"kind"`
	Reason   string    `json:"reason,omitempty"`
	Tool     string    `json:"tool,omitempty"`    // the agent's own name of it
	Command  string    `json:"command,omitempty"` // what it would run, as a line of shell
	Paths    []string  `json:"paths,omitempty"`   // files that it is about, as the agent names them
	AskedAt  time.Time `json:"askedAt"`
}

// Policy is what an agent may do without anybody being asked (X37).
type Policy struct {
	Approve string   `json:"approve,omitempty"`
	Rules   []string `json:"rules,omitempty"`   // in the words of their file
	Unasked []string `json:"unasked,omitempty"` // kinds of tools that the agent uses without asking, whatever it is told
}
