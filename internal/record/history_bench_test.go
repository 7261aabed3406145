package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pintle/pintle/state/journal"
)

// A page of a long session: 100,000 rows in turns of 50, about 25 MiB.
func BenchmarkHistory(b *testing.B) {
	var events []journal.Event
	words := strings.Repeat("some words ", 20)
	for i := range 2000 {
		events = append(events, told(turnStarted, `{}`))
		for j := range 25 {
			events = append(events, said("agent_message_chunk", words, fmt.Sprint(i, j)), told("tool_call", fmt.Sprintf(`{"toolCallId":"%d"}`, j)))
		}
		events = append(events, told("turn_ended", `{}`))
	}
	d := journalled(b, events...)
	last := uint64(len(events))
	for name, p := range map[string]Page{"tail": {}, "middle": {Before: new(last / 2)}, "onward": {After: new(last / 3)}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if len(history(b, d, p).Rows) != 40 {
					b.Fatal("no page")
				}
			}
		})
	}
}
