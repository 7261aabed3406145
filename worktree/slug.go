package worktree

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// maxSlug leaves room for the -NN that makes a name unique: 50 characters in all (X27).
const maxSlug = 47

// plain has what Latin letters outside ASCII are commonly written as without their marks.
var plain = table(map[string]string{
	"a": "àáâãåāăą", "ae": "äæ", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭįı",
	"j": "ĵ", "k": "ķ", "l": "ĺļľŀł", "n": "ñńņňŉŋ", "o": "òóôõøōŏő", "oe": "öœ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß",
	"t": "ţťŧț", "th": "þ", "u": "ùúûũūŭůűų", "ue": "ü", "w": "ŵ", "y": "ýÿŷ", "z": "źżž",
})

func table(spelled map[string]string) map[rune]string {
	all := map[rune]string{}
	for ascii, letters := range spelled {
		for _, letter := range letters {
			all[letter] = ascii
		}
	}
	return all
}

// Slug makes a directory name of any name: lower case a-z, 0-9 and single hyphens, at most 47 characters. A name of
// which nothing is left, because its script is another, becomes a part of its hash.
func Slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		b.WriteString(spell(r))
		if b.Len() > 4*maxSlug { // a long prompt is not read to its end
			break
		}
	}
	slug := strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '-' }), "-")
	slug = strings.TrimRight(slug[:min(len(slug), maxSlug)], "-")
	if slug == "" {
		return fmt.Sprintf("w-%x", sha256.Sum256([]byte(name)))[:10]
	}
	return slug
}

// spell returns what stands for a letter; a mark that combines with the letter before it stands for nothing.
func spell(r rune) string {
	switch {
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return string(r)
	case 0x300 <= r && r <= 0x36f:
		return ""
	}
	if ascii, ok := plain[r]; ok {
		return ascii
	}
	return "-"
}
