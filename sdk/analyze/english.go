package analyze

import "strings"

// stops are words that nearly every English text has and that say nothing of
// what it is about. Words that deny stay: they are rare enough to tell.
var stops = map[string]bool{}

func init() {
	for _, word := range strings.Fields(`
		a an the and or but if of in on at by for to from with into as than
		is are was were be been being it its this that these those there
		they them their we our which who such will would has have had do does did`) {
		stops[word] = true
	}
}

// appendEnglish takes the words of standard, less the stops, by their stems.
func appendEnglish(words []string, text string) []string {
	text = strings.ToLower(text)
	for {
		var word string
		if word, text = next(text, false); word == "" {
			return words
		}
		if !stops[word] {
			words = append(words, stem(word))
		}
	}
}
