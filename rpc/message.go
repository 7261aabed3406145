package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// malformed is input that is no message.
type malformed struct {
	id      json.RawMessage // to answer under; nil if none can be told
	why     *api.Error
	closing int // if not 0, the connection cannot go on and is closed with this code
}

func (m *malformed) Error() string { return m.why.Message }

func refuse(id json.RawMessage, code api.Code, format string, args ...any) *malformed {
	return &malformed{id: bytes.Clone(id), why: api.E(code, format, args...)}
}

// decode reads a line into the library's message type, which it fills only with what check passed: the
// library closes the connection on anything else.
func decode(line []byte, v any) error {
	if bad := check(line); bad != nil {
		return bad
	}
	if err := json.Unmarshal(line, v); err != nil {
		// The library's decoder also takes names in another case, so it may see a member that check does
		// not. It has half-filled v then, and v's fields are its own.
		reflect.ValueOf(v).Elem().SetZero()
		return refuse(nil, api.CodeRequest, "not a JSON-RPC message")
	}
	return nil
}

// check returns the refusal for a line that is no message. It looks at the names as they are written, where
// decoding into a struct would take "ID" for "id".
func check(line []byte) *malformed {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(line, &m); err != nil || m == nil {
		if !json.Valid(line) {
			return refuse(nil, api.CodeParse, "not JSON")
		}
		return refuse(nil, api.CodeRequest, "not a JSON-RPC message: want one object a line, no batch")
	}
	id, named := m["id"]
	var method *string
	_, result := m["result"]
	_, failure := m["error"]
	_, isRequest := m["method"]
	switch {
	case named && !isRequest && failure && string(id) == "null":
		return nil // an answer to something unreadable
	case named && !scalar(id):
		return refuse(nil, api.CodeRequest, "an id is a string or a number")
	case named && !takes(id):
		return refuse(id, api.CodeRequest, "an id is a string or a whole number from 0 to 2^63-1")
	case string(m["jsonrpc"]) != `"2.0"`, isRequest == (result || failure), !isRequest && !named:
		return refuse(id, api.CodeRequest, `not a JSON-RPC message: want "jsonrpc":"2.0" and a method`)
	case isRequest && (json.Unmarshal(m["method"], &method) != nil || method == nil):
		return refuse(id, api.CodeRequest, "a method is a string")
	}
	return nil
}

func scalar(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

// takes reports whether the library can answer under the id: it keeps numbers as uint64, read as int64.
func takes(id json.RawMessage) bool {
	var number int64
	return id[0] == '"' || json.Unmarshal(id, &number) == nil && number >= 0 && id[0] != '-'
}

// answer is a response as it is written.
type answer struct {
	JSONRPC version         `json:"jsonrpc"`
	ID      any             `json:"id"` // null when it is not known
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc2.Error `json:"error,omitempty"`
}

type notification struct {
	JSONRPC version `json:"jsonrpc"`
	Method  string  `json:"method"`
	Params  any     `json:"params,omitempty"`
}

// version writes itself, so that no literal can forget it.
type version struct{}

func (version) MarshalJSON() ([]byte, error) { return []byte(`"2.0"`), nil }

// encode makes the line of a message. One that the other end would skip is an error here, where somebody
// can still be told.
func encode(obj any) ([]byte, error) {
	line, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if len(line) > MaxLine {
		return nil, api.E(api.CodeParams, "a message of %d bytes is over the limit of %d", len(line), MaxLine)
	}
	return append(line, '\n'), nil
}
