package environ

import "slices"

// Stream masks what comes in pieces. It holds back less than one secret; the zero value masks nothing. One
// goroutine uses it.
type Stream struct {
	masker *Masker
	held   []byte
}

// NewStream returns a Stream that masks with m.
func NewStream(m *Masker) *Stream { return &Stream{masker: m} }

// Write takes the next piece and returns what can be told now, masked. The answer may share memory with
// piece, which the caller must not change before it is done with the answer.
func (s *Stream) Write(piece []byte) []byte {
	if s.masker == nil || s.masker.empty {
		return piece
	}
	if len(s.held) > 0 {
		piece = slices.Concat(s.held, piece)
	}
	masked, rest := s.masker.mask(piece, false)
	s.held = append([]byte(nil), rest...)
	return masked
}

// Flush returns what was held back, masked: the stream is over, and nothing can complete it to a secret.
func (s *Stream) Flush() []byte {
	rest := s.held
	s.held = nil
	return s.masker.Bytes(rest)
}
