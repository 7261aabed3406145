package record

// TextLimit is how much of a command's output its result holds, in bytes: the last of it.
const TextLimit = 1 << 20

// Tail keeps the last TextLimit bytes of what is written to it, or All.
type Tail struct {
	All  bool
	data []byte
}

// Reset forgets what was kept.
func (t *Tail) Reset() { t.data = t.data[:0] }

// Add appends p.
func (t *Tail) Add(p []byte) {
	t.data = append(t.data, p...)
	if !t.All && len(t.data) > 2*TextLimit { // rarely, so that a flood is not copied again and again
		t.data = append(t.data[:0], t.data[len(t.data)-TextLimit:]...)
	}
}

// Bytes are what was kept; valid until the next Add.
func (t *Tail) Bytes() []byte {
	if t.All {
		return t.data
	}
	return t.data[max(0, len(t.data)-TextLimit):]
}
