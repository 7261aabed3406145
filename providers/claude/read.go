package claude

import "github.com/pintle/pintle/providers/wire"

// heldLimit is what is bounded besides (wire): bytes of all messages that are held.
const heldLimit = 4 << 20

type (
	ident = wire.Ident
	word  = wire.Word
)

// read decodes what an agent says as far as it is what was expected.
func read(data []byte, into any) bool { return wire.Read(data, into) }
