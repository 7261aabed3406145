package rpc

import (
	"encoding/json"
	"errors"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/pintle/pintle/rpc/api"
)

// data is what a refusal carries besides JSON-RPC's number and text.
type data struct {
	Code      api.Code `json:"code"`
	Retryable bool     `json:"retryable"`
	Next      string   `json:"next,omitempty"`
	Fields    []string `json:"fields,omitempty"`
}

func toWire(err error) *jsonrpc2.Error {
	e := api.As(err)
	w := &jsonrpc2.Error{Code: int64(e.Code.Wire()), Message: e.Message}
	w.SetError(data{Code: e.Code, Retryable: e.Retryable, Next: e.Next, Fields: e.Fields})
	return w
}

// fromWire makes the typed error of an answer, so that errors.As and errors.Is work across the wire.
func fromWire(err error) error {
	var w *jsonrpc2.Error
	if !errors.As(err, &w) {
		return err
	}
	var d data
	if w.Data == nil || json.Unmarshal(*w.Data, &d) != nil || d.Code == "" {
		d.Code = api.CodeInternal
	}
	return &api.Error{Code: d.Code, Message: w.Message, Retryable: d.Retryable, Next: d.Next, Fields: d.Fields}
}
