package supervisor

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pintle/pintle/rpc"
	"github.com/pintle/pintle/rpc/api"
	"github.com/pintle/pintle/state/journal"
)

// tell tells of an event. One that is no line of the wire is told cut: a subscriber who heard nothing of it would hear nothing
// of what is behind it either.
func tell(p *rpc.Peer, e journal.Event) error {
	err := p.Send(api.NotifyEvent, e)
	if api.CodeOf(err) != api.CodeParams {
		return err
	}
	for _, limit := range []int{256 << 10, 16 << 10, 1 << 10} {
		e.Data = cutShort(e.Data, limit)
		if err = p.Send(api.NotifyEvent, e); api.CodeOf(err) != api.CodeParams {
			return err
		}
	}
	e.Data = json.RawMessage(`{"cut":true}`)
	return p.Send(api.NotifyEvent, e)
}

// cutShort is the data of an event with none of its texts longer than limit, which it says. The journal has the whole.
func cutShort(data json.RawMessage, limit int) json.RawMessage {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&fields) != nil || fields == nil {
		return json.RawMessage(`{"cut":true}`)
	}
	shorten(fields, limit)
	fields["cut"] = true
	short, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{"cut":true}`)
	}
	return short
}

func shorten(v any, limit int) any {
	switch v := v.(type) {
	case string:
		if len(v) > limit {
			return strings.ToValidUTF8(v[:limit], "")
		}
	case []any:
		for i := range v {
			v[i] = shorten(v[i], limit)
		}
	case map[string]any:
		for name := range v {
			v[name] = shorten(v[name], limit)
		}
	}
	return v
}
