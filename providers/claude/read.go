package claude

import "github.com/pintle/pintle/providers/wire"

type (
	ident = wire.Ident
	word  = wire.Word
)

// read decodes what an agent says as far as it is what was expected.
func read(data []byte, into any) bool { return wire.Read(data, into) }
