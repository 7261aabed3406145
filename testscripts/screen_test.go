package testscripts

import (
	"strconv"
	"strings"
)

// screen is what somebody who sits at a terminal has seen: lines as they stand after all that moved and cleared.
func (p *seat) screen() string {
	lines, row, column := [][]rune{nil}, 0, 0
	text := []rune(p.text())
	for i := 0; i < len(text); i++ {
		switch r := text[i]; r {
		case '\r':
			column = 0
		case '\n':
			if row++; row == len(lines) {
				lines = append(lines, nil)
			}
		case 0x1b:
			n := i + 2
			for n < len(text) && text[n] >= '0' && text[n] <= '9' {
				n++
			}
			if n >= len(text) {
				break
			}
			count, err := strconv.Atoi(string(text[i+2 : n]))
			if err != nil {
				count = 1
			}
			switch text[n] {
			case 'A':
				row -= count
			case 'C':
				column += count
			case 'D':
				column -= count
			case 'K':
				lines[row] = lines[row][:min(column, len(lines[row]))]
			}
			i = n
		default:
			for len(lines[row]) <= column {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][column] = r
			column++
		}
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// shows waits for words on the screen, n times in all.
func (p *seat) shows(words string, n int) {
	p.s.t.Helper()
	defer func() {
		if p.s.t.Failed() {
			p.s.t.Logf("the screen:\n%s", p.screen())
		}
	}()
	p.s.until("the screen shows "+strconv.Quote(words), func() bool { return strings.Count(p.screen(), words) == n })
}
