package record

// TextLimit is how much of a command's output its result holds, in bytes: the last of it.
const TextLimit = 1 << 20

// Tail keeps the last TextLimit bytes of what is written to it.
type Tail struct{ data []byte }

// Add appends p.
func (t *Tail) Add(p []byte) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*TextLimit { // rarely, so that a flood is not copied again and again
		t.data = append(t.data[:0], t.data[len(t.data)-TextLimit:]...)
	}
}

// Bytes are what was kept; valid until the next Add.
func (t *Tail) Bytes() []byte { return t.data[max(0, len(t.data)-TextLimit):] }
