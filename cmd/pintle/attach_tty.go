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
	"unicode/utf8"

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
	whole := &whole{out: y.screen, width: y.columns}
	t.a.stdout, t.a.stderr = whole, whole
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

// whole writes whole lines: the line that is being typed stands below them. One that grows longer than the terminal is wide
// is broken where there is a blank.
type whole struct {
	out   io.Writer
	width func() int
	mu    sync.Mutex
	rest  string
}

func (w *whole) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest += string(b)
	i := strings.LastIndexByte(w.rest, '\n') + 1
	if most := w.width() - 1; i == 0 && utf8.RuneCountInString(w.rest) > most {
		i = strings.LastIndexByte(w.rest, ' ') + 1
	}
	return len(b), w.put(i)
}

// put writes so much of what is there, as lines.
func (w *whole) put(n int) error {
	if n == 0 {
		return nil
	}
	text := w.rest[:n]
	w.rest = w.rest[n:]
	_, err := io.WriteString(w.out, strings.TrimSuffix(strings.TrimSuffix(text, "\n"), " ")+"\n")
	return err
}

// end ends the line that was begun.
func (w *whole) end() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(len(w.rest))
}
