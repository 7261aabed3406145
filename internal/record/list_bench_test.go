package record

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/internal/session"
	"github.com/pintle/pintle/state"
)

// BenchmarkList10000 reads what ps reads of ten thousand runs that have ended.
func BenchmarkList10000(b *testing.B) {
	d, err := state.Open(b.Context(), filepath.Join(b.TempDir(), "h"))
	if err != nil {
		b.Fatal(err)
	}
	spec := []byte(`{"version":1,"id":"model","controller":"local","createdAt":"2026-11-30T07:54:31.000290829Z","payload":{"argv":["true"],"provider":"command","cwd":"/tmp"},"limits":{},"environment":{"umask":18},"desired":{"attempt":1,"at":"2026-11-30T07:54:31.000343307Z","bootId":"651a4a89-7461-435e-a8c4-f872955205a2"}}` + "\n")
	status := []byte(`{"version":1,"id":"model","controller":"local","session":"s-c00549ed756c7e5b","provider":"command","phase":"ended","outcome":"completed","exitCode":0,"cause":{"status":0},"attempt":1,"fence":1,"cwd":"/tmp","workspace":"w-96bac5cae007967d","createdAt":"2026-11-30T07:54:31.000290829Z","startedAt":"2026-11-30T07:54:31.032935437Z","endedAt":"2099-11-30T07:54:31.849586813Z","runtimeId":"x-768f51b0b9a8b16b","bootId":"651a4a89-7461-435e-a8c4-f872955205a2","try":1}` + "\n")
	for i := range 10000 {
		key := fmt.Sprint("k", i)
		dir := d.Path("executions", session.Folder(session.Local, key))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, data := range map[string][]byte{"spec.json": spec, "status.json": status} {
			data = bytes.Replace(data, []byte(`"model"`), []byte(`"`+key+`"`), 1)
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		rows, err := List(d)
		if err != nil || len(rows) != 10000 {
			b.Fatal(len(rows), err)
		}
	}
}
