package fakemodel

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// kind is what the model does in a step.
type kind int

const (
	say         kind = iota // text
	command                 // has text run by a shell
	poll                    // asks how the command of session number goes on
	patch                   // applies text
	tool                    // calls the tool name with text, which is JSON
	custom                  // calls the tool name with text, which is anything
	write                   // writes text into the file name
	read                    // reads the file text
	plan                    // makes a plan of the steps "one", in progress, and "two"
	status                  // the HTTP status number, with retry after text if that is not empty
	hangHeaders             // never answers
	hangBody                // begins to answer, and then nothing more comes
	fail                    // fails with the code name and the message text
	incomplete              // ends early, with the reason text
)

// cut is where a connection breaks, or the model falls silent.
type cut int

const (
	never     cut = iota
	inThought     // after a part of the thought
	inItem        // after a part of the text
	afterItem     // after the whole text or call, before the end
)

// A step is what the model does in answer to one request.
type step struct {
	kind      kind
	text      string
	name      string
	number    int
	reasoning string        // thought first
	pieces    []string      // the text in parts; by default it is cut into words
	pause     time.Duration // after each
	escalated bool          // of a command: asks to run outside the sandbox
	cut       cut
	silent    bool // nothing more comes there, and the connection stays
	tokens    int  // used in all
}

// A script is what a prompt asks for.
type script struct {
	first step
	again *step // instead of first, when that was asked before
	hang  bool  // once a tool has answered
}

// next is the step for a prompt that was asked before so many times, and to which tools gave outputs.
func (s script) next(before int, outputs []string) step {
	switch {
	case len(outputs) > 0 && s.hang:
		return step{kind: hangBody}
	case len(outputs) > 0:
		return follow(outputs[len(outputs)-1])
	case before > 0 && s.again != nil:
		return *s.again
	}
	return s.first
}

// running finds the session of a command that goes on, as Codex tells it, and as it does in code mode.
var running = regexp.MustCompile(`(?:Process running with session ID |"session_id":)(\d+)`)

// follow is the step after a tool's output.
func follow(output string) step {
	if found := running.FindStringSubmatch(output); found != nil {
		if session, err := strconv.Atoi(found[1]); err == nil {
			return step{kind: poll, number: session}
		}
	}
	return step{text: "tool said: " + output}
}

// compaction begins what Codex asks for when a conversation gets too long.
const compaction = "You are performing a CONTEXT CHECKPOINT COMPACTION"

// words are what a prompt may begin with, and what becomes of the rest of it. A suffix of the prompt says more
// about a call: "##hang" never goes on once the tool has answered, "##drop" breaks the connection behind the call.
var words = []struct {
	word  string
	parse func(rest string) (script, error)
}{
	{"respond with exactly:", text(never)}, // TEXT
	{"sleep ", sleep},                      // SECONDS
	{"shell:", run(false)},                 // COMMAND
	{"shell-escalated:", run(true)},        // COMMAND
	{"patch:", addFile},                    // PATH of a file to add, or a whole patch, where the API has those
	{"write:", writeFile},                  // PATH of a file, which will hold "hello"
	{"read:", readFile},                    // PATH
	{"plan", always(step{kind: plan})},
	{"slow:", slow},                  // N MS: N words, each MS milliseconds after the other
	{"big:", big},                    // N [PIECE]: N bytes, in one delta or in deltas of PIECE bytes
	{"http:", httpStatus},            // CODE [RETRY-AFTER or TYPE]
	{"http-once:", once(httpStatus)}, // likewise; asked again it says "recovered"
	{"hang-headers", always(step{kind: hangHeaders})},
	{"hang-body", always(step{kind: hangBody})},
	{"hang-thought:", silence(inThought)},      // TEXT of a thought, of which only the first word comes
	{"hang-text:", silence(inItem)},            // TEXT, of which only the first word comes
	{"hang-late:", silence(afterItem)},         // TEXT, all of which comes, and then nothing
	{"drop:", text(inItem)},                    // TEXT, of which only the first word comes
	{"drop-once:", once(text(inItem))},         // likewise; asked again it says TEXT
	{"drop-late:", text(afterItem)},            // TEXT, all of which comes, and then no end
	{"drop-late-once:", once(text(afterItem))}, // likewise; asked again it says TEXT and ends
	{"fail:", failure},                         // CODE MESSAGE
	{"incomplete:", reason},                    // REASON: max_output_tokens, content_filter or one of the API's own
	{"usage:", usage},                          // N tokens in all
	{"reason:", think},                         // TEXT of the thought; then it says "done"
	{"custom:", call(custom, "\n")},            // NAME, newline, INPUT
	{"tool:", call(tool, " ")},                 // NAME JSON, or NAMESPACE/NAME JSON
	{compaction, always(step{text: "a summary"})},
}

// parse reads a prompt. One that begins with no word of the script is answered "ok".
func parse(prompt string) (script, error) {
	prompt = strings.TrimSpace(prompt)
	rest, hang := strings.CutSuffix(prompt, "##hang")
	rest, drop := strings.CutSuffix(rest, "##drop")
	for _, w := range words {
		arg, ok := strings.CutPrefix(rest, w.word)
		if !ok {
			continue
		}
		s, err := w.parse(strings.TrimSpace(arg))
		if err != nil {
			return script{}, fmt.Errorf("script %q: %w", w.word, err)
		}
		s.hang = hang
		if drop {
			s.first.cut = afterItem
		}
		return s, nil
	}
	return script{first: step{text: "ok"}}, nil
}

func always(st step) func(string) (script, error) {
	return func(string) (script, error) { return script{first: st}, nil }
}

func text(c cut) func(string) (script, error) {
	return func(rest string) (script, error) { return script{first: step{text: rest, cut: c}}, nil }
}

// silence has the model say nothing more at a place.
func silence(c cut) func(string) (script, error) {
	return func(rest string) (script, error) {
		st := step{text: rest, cut: c, silent: true}
		if c == inThought {
			st.reasoning, st.text = rest, "done"
		}
		return script{first: st}, nil
	}
}

// once has only the first try go wrong.
func once(parse func(string) (script, error)) func(string) (script, error) {
	return func(rest string) (script, error) {
		s, err := parse(rest)
		s.again = &step{text: s.first.text}
		if s.first.kind == status {
			s.again.text = "recovered"
		}
		return s, err
	}
}

func sleep(rest string) (script, error) {
	if _, err := strconv.ParseFloat(rest, 64); err != nil {
		return script{}, err
	}
	return script{first: step{kind: command, text: "sleep " + rest}}, nil
}

func run(escalated bool) func(string) (script, error) {
	return func(rest string) (script, error) {
		return script{first: step{kind: command, text: rest, escalated: escalated}}, nil
	}
}

func addFile(rest string) (script, error) {
	st := step{kind: patch, text: rest}
	if !strings.HasPrefix(rest, "*** Begin Patch") {
		st.name, st.text = rest, adding(rest)
	}
	return script{first: st}, nil
}

// adding is the patch that adds a file which holds "hello".
func adding(path string) string {
	return "*** Begin Patch\n*** Add File: " + path + "\n+hello\n*** End Patch"
}

func writeFile(rest string) (script, error) {
	return script{first: step{kind: write, name: rest}}, nil
}

func readFile(rest string) (script, error) {
	return script{first: step{kind: read, text: rest}}, nil
}

func slow(rest string) (script, error) {
	n, ms, err := numbers(rest)
	if err != nil {
		return script{}, err
	}
	st := step{pause: time.Duration(ms) * time.Millisecond}
	for i := range n {
		st.pieces = append(st.pieces, fmt.Sprintf("w%d ", i+1))
	}
	st.text = strings.Join(st.pieces, "")
	return script{first: st}, nil
}

func big(rest string) (script, error) {
	n, size, err := numbers(rest)
	if err != nil {
		return script{}, err
	}
	const line = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ\n"
	st := step{text: strings.Repeat(line, n/len(line)+1)[:n]}
	if size == 0 {
		size = max(n, 1)
	}
	for rest := st.text; rest != ""; {
		piece := rest[:min(size, len(rest))]
		st.pieces, rest = append(st.pieces, piece), rest[len(piece):]
	}
	return script{first: st}, nil
}

// numbers reads one number or two, none of them negative.
func numbers(rest string) (first, second int, err error) {
	for i, field := range strings.Fields(rest) {
		n, err := strconv.ParseUint(field, 10, 31)
		switch {
		case err != nil:
			return 0, 0, err
		case i == 0:
			first = int(n)
		case i == 1:
			second = int(n)
		default:
			return 0, 0, fmt.Errorf("%q is too much", field)
		}
	}
	if strings.TrimSpace(rest) == "" {
		return 0, 0, fmt.Errorf("a number is missing")
	}
	return first, second, nil
}

func httpStatus(rest string) (script, error) {
	code, more, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(code)
	if err != nil || n < 200 || n > 599 {
		return script{}, fmt.Errorf("%q is no status of HTTP", code)
	}
	st := step{kind: status, number: n, name: more}
	if _, err := strconv.Atoi(more); err == nil {
		st.name, st.text = "", more
	}
	return script{first: st}, nil
}

func failure(rest string) (script, error) {
	code, message, _ := strings.Cut(rest, " ")
	return script{first: step{kind: fail, name: code, text: message}}, nil
}

func reason(rest string) (script, error) {
	return script{first: step{kind: incomplete, text: rest}}, nil
}

func usage(rest string) (script, error) {
	n, _, err := numbers(rest)
	return script{first: step{text: "used " + rest, tokens: n}}, err
}

func think(rest string) (script, error) {
	return script{first: step{reasoning: rest, text: "done"}}, nil
}

func call(k kind, separator string) func(string) (script, error) {
	return func(rest string) (script, error) {
		name, args, _ := strings.Cut(rest, separator)
		return script{first: step{kind: k, name: strings.TrimSpace(name), text: args}}, nil
	}
}

// firstWord is a text's, with the space behind it.
func firstWord(text string) string { return strings.SplitAfter(text, " ")[0] }

// longPiece is how much of a long text comes in one piece.
const longPiece = 4096

// parts cuts a step's text: as its script says, or into words, a long text into larger parts. What breaks in
// the midst has one part.
func (st step) parts() []string {
	parts := st.pieces
	if parts == nil && len(st.text) <= longPiece {
		parts = strings.SplitAfter(st.text, " ")
	} else if parts == nil {
		parts = chunk(st.text, longPiece)
	}
	if st.cut == inItem {
		return parts[:1]
	}
	return parts
}

// chunk cuts text between characters, into parts of at most size bytes.
func chunk(text string, size int) (parts []string) {
	for len(text) > size {
		n := size
		for n > size-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		parts, text = append(parts, text[:n]), text[n:]
	}
	return append(parts, text)
}
