package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

// line is one that was typed, or came on standard input.
type line struct {
	text string
	err  error
}

// longestLine is the longest line of standard input: a longer message is refused in any case.
const longestLine = 4 << 20

// linesOf reads standard input of a verb without a terminal.
func linesOf(in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, longestLine)
		for s.Scan() {
			lines <- line{text: s.Text()}
		}
		if s.Err() != nil {
			lines <- line{err: s.Err()}
		}
	}()
	return lines
}

// tty is the terminal at which somebody sits: what comes is written above the line that is being typed.
type tty struct {
	t       *attachment
	screen  *term.Terminal
	above   *whole
	was     *term.State
	resized chan os.Signal
	mu      sync.Mutex
	width   int
}

// sit takes the terminal over, until leave. The verb's own talk goes above the line, too.
func sit(t *attachment) (*tty, error) {
	y := &tty{t: t, resized: make(chan os.Signal, 1), width: 80}
	var err error
	control(t.a.stdin, func(fd int) { y.was, err = term.MakeRaw(fd) })
	if err != nil {
		return nil, err
	}
	y.screen = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&keys{t.a.stdin, t.interrupts}, t.a.stdout}, "> ")
	y.size()
	signal.Notify(y.resized, syscall.SIGWINCH)
	go func() {
		for range y.resized {
			y.size()
		}
	}()
	y.above = &whole{out: y.screen, width: y.columns}
	t.a.stdout, t.a.stderr = y.above, y.above
	t.lines = y.read()
	return y, nil
}

// keys are what is typed, but for Ctrl-C, which is no end of the line.
type keys struct {
	in         io.Reader
	interrupts chan<- time.Time
}

func (k *keys) Read(b []byte) (int, error) {
	n, err := k.in.Read(b)
	kept := 0
	for _, c := range b[:n] {
		if c != ctrlC {
			b[kept] = c
			kept++
			continue
		}
		select {
		case k.interrupts <- time.Now():
		default: // as many as anybody could mean are waiting
		}
	}
	return kept, err
}

const ctrlC = 3

// read reads lines until whoever sits there leaves.
func (y *tty) read() <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		for {
			text, err := y.screen.ReadLine()
			if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
				return // Ctrl-D, or the terminal has gone
			}
			y.above.end() // the line that was typed is the line above now
			lines <- line{text: text}
		}
	}()
	return lines
}

// size takes in how large the terminal is.
func (y *tty) size() {
	width, height := 0, 0
	control(y.t.a.stdin, func(fd int) { width, height, _ = term.GetSize(fd) })
	if width <= 0 || height <= 0 {
		return
	}
	_ = y.screen.SetSize(width, height)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.width = width
}

func (y *tty) columns() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.width
}

// leave gives the terminal back as it was.
func (y *tty) leave() {
	signal.Stop(y.resized)
	control(y.t.a.stdin, func(fd int) { _ = term.Restore(fd, y.was) })
	y.t.a.stdout, y.t.a.stderr = os.Stdout, os.Stderr
	_, _ = io.WriteString(os.Stdout, "\r\x1b[K")
}

// whole has what is written stand above the line that is being typed, which is written anew below it each time. So a line
// that has not ended is ended all the same, and when more of it comes it is written once more, in its place.
type whole struct {
	out   io.Writer
	width func() int
	mu    sync.Mutex
	rest  string // a line that has not ended
	shown bool   // it is the line above
}

func (w *whole) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out strings.Builder
	if w.shown {
		out.WriteString(anew)
	}
	ended := w.rest + string(b)
	i := strings.LastIndexByte(ended, '\n') + 1
	out.WriteString(ended[:i])
	w.rest = ended[i:]
	for n := fitting(w.rest, w.width()-1); n < len(w.rest); n = fitting(w.rest, w.width()-1) {
		out.WriteString(strings.TrimSuffix(w.rest[:n], " ") + "\n") // it would be no single line to be written once more
		w.rest = w.rest[n:]
	}
	if w.shown = w.rest != ""; w.shown {
		out.WriteString(w.rest + "\n")
	}
	_, err := io.WriteString(w.out, out.String())
	return len(b), err
}

// anew goes back to the beginning of the line above, and clears it.
const anew = "\x1b[A\r\x1b[K"

// fitting is how many bytes of a line fit into so many columns, up to a blank if there is one.
func fitting(s string, columns int) int {
	at := 0
	for i, r := range s {
		if columns--; r >= firstWide {
			columns--
		}
		if columns < 0 && i > 0 {
			if at > 0 {
				return at
			}
			return i
		}
		if r == ' ' {
			at = i + 1
		}
	}
	return len(s)
}

// firstWide is where characters begin that may be two columns wide. To take a narrow one for wide only breaks a line early.
const firstWide = 0x1100

// end has what comes begin another line.
func (w *whole) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest, w.shown = "", false
}
