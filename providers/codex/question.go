package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// question is what any request of the server's may have in it, as far as it can be answered by yes or no.
type question struct {
	where
	ConversationID  ident
	ItemID, CallID  ident
	Kind, Reason    string
	Command         json.RawMessage // a line, or a list of words
	Cwd             string
	GrantRoot       string
	FileChanges     map[string]json.RawMessage
	Permissions     permissions
	Additional      permissions                      `json:"additionalPermissions"`
	Network         *struct{ Host, Protocol string } `json:"networkApprovalContext"`
	ServerName      string
	Message         string
	Mode, URL       string
	RequestedSchema struct{ Properties map[string]json.RawMessage }
	Meta            struct {
		Kind string `json:"codex_approval_kind"`
		Tool string `json:"tool_name"`
	} `json:"_meta"`
	Questions []struct{ Question string }
	Tool      string
}

// permissions are more than the sandbox gives.
type permissions struct {
	Network    *struct{ Enabled bool }
	FileSystem *struct {
		Read, Write []string
		Entries     []struct {
			Path   struct{ Path, Pattern string }
			Access string
		}
	}
}

// words says what they are; "" if nothing is known of it.
func (p permissions) words() string {
	var words []string
	if p.Network != nil && p.Network.Enabled {
		words = append(words, "network")
	}
	if p.FileSystem == nil {
		return strings.Join(words, ", ")
	}
	for _, path := range p.FileSystem.Read {
		words = append(words, "read "+path)
	}
	for _, path := range p.FileSystem.Write {
		words = append(words, "write "+path)
	}
	for _, e := range p.FileSystem.Entries {
		words = append(words, e.Access+" "+e.Path.Path+e.Path.Pattern)
	}
	slices.Sort(words) // what is in two lists is named once
	return strings.Join(slices.Compact(words), ", ")
}

// line is what is to be run, as a line of shell.
func (q question) line() string {
	var words []string
	if json.Unmarshal(q.Command, &words) != nil {
		return name(q.Command)
	}
	for i, word := range words {
		if strings.Trim(word, bare) != "" || word == "" {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// bare are the characters of a word that needs no quotes.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,"

// command is what is to be run, or reached.
func (q question) command() string {
	line := q.line()
	title := "to run " + line
	switch {
	case q.Network != nil:
		title = fmt.Sprintf("to reach %s by %s", q.Network.Host, q.Network.Protocol)
	case q.Kind == "writeStdin":
		title = "to type into " + line
	}
	if more := q.Additional.words(); more != "" {
		title += " with " + more
	}
	return title
}

// change is what files are to be changed. The question names none: its item does, which has started before.
func (f *fold) change(q question) string {
	var paths []string
	for path := range q.FileChanges {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	title := "to " + f.changing(paths)
	if i := f.find(string(q.ItemID)); i >= 0 && f.Items[i].Title != "" {
		title = "to " + f.Items[i].Title
	}
	if q.GrantRoot != "" {
		title += ", and from then on any under " + q.GrantRoot
	}
	return title
}

// wanted are the permissions as they were asked for, to be granted as they are.
func wanted(params json.RawMessage) json.RawMessage {
	var p struct{ Permissions map[string]json.RawMessage }
	_ = json.Unmarshal(params, &p)
	for name, value := range p.Permissions {
		if bytes.Equal(value, []byte("null")) {
			delete(p.Permissions, name)
		}
	}
	return encode(p.Permissions)
}

// plain says that an MCP server wants a yes and nothing else: no form to fill in, no page to be opened.
func (q question) plain() bool {
	return q.Mode != "url" && q.URL == "" && q.Mode != "openai/userVerification" && len(q.RequestedSchema.Properties) == 0
}

// consent is what an MCP server asks, or codex on behalf of a tool of it.
func (q question) consent() string {
	if q.Meta.Kind == "mcp_tool_call" && q.Meta.Tool != "" {
		return fmt.Sprintf("to call %s of the MCP server %s", q.Meta.Tool, q.ServerName)
	}
	return fmt.Sprintf("on behalf of the MCP server %s: %s", q.ServerName, q.Message)
}

// talk is what was asked that is no permission.
func (q question) talk(method string) string {
	switch {
	case len(q.Questions) > 0:
		return "a question: " + q.Questions[0].Question
	case q.Message != "":
		return strings.TrimSpace(q.consent() + " " + q.URL)
	case q.Tool != "":
		return "to call the tool " + q.Tool
	}
	return "for " + method
}
