package supervisor

// textLimit is how much of a command's output its result holds, in bytes: the last of it.
const textLimit = 1 << 20

// tail keeps the last textLimit bytes of what is written to it.
type tail struct{ data []byte }

func (t *tail) write(p []byte) {
	t.data = append(t.data, p...)
	if len(t.data) > 2*textLimit { // rarely, so that a flood is not copied again and again
		t.data = append(t.data[:0], t.data[len(t.data)-textLimit:]...)
	}
}

func (t *tail) bytes() []byte { return t.data[max(0, len(t.data)-textLimit):] }
