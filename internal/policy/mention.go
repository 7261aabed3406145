package policy

import "strings"

// unquoted has what quotes nothing else taken away.
var unquoted = strings.NewReplacer(`\\`, "", "'", "", `"`, "")

// mentions reports whether a word is in a line, however it is quoted there, and whatever it stands beside that is no part of a
// word.
func mentions(line, word string) bool {
	line, word = strings.ToLower(line), strings.ToLower(word)
	return contains(line, word) || contains(unquoted.Replace(line), word)
}

func contains(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		from += i
		if !wordy(text, from-1) && !wordy(text, from+len(word)) {
			return true
		}
		from++
	}
}

// wordy says that there is a letter, a digit or a part of one at a place.
func wordy(text string, at int) bool {
	if at < 0 || at >= len(text) {
		return false
	}
	c := text[at]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
