package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Analyzer splits texts into words. It is immutable and safe for concurrent use.
type Analyzer struct {
	name  string
	split func(words []string, text string) []string // text in form NFKC
}

var analyzers = slices.SortedFunc(slices.Values(append([]Analyzer{
	{"code", appendCode},
	{"english", stemmer(englishStops, stem)},
	{"ngram", appendNgram},
	{"standard", appendStandard},
}, languages...)), func(a, b Analyzer) int { return cmp.Compare(a.name, b.name) })

// Names lists the analyzers, sorted.
func Names() []string {
	names := make([]string, len(analyzers))
	for i, a := range analyzers {
		names[i] = a.name
	}
	return names
}

// Named returns the analyzer with a name.
func Named(name string) (Analyzer, error) {
	for _, a := range analyzers {
		if a.name == name {
			return a, nil
		}
	}
	return Analyzer{}, fmt.Errorf("unknown analyzer %q; use one of %s", name, strings.Join(Names(), ", "))
}

// String returns the analyzer's name.
func (a Analyzer) String() string { return a.name }

// Append adds the words of a text to words, in the order in which they stand in
// the text and as often as they do, and returns the extended slice. The words
// may share memory with the text.
func (a Analyzer) Append(words []string, text string) []string {
	return a.split(words, norm.NFKC.String(text))
}

func appendStandard(words []string, text string) []string {
	text = strings.ToLower(text)
	for {
		var word string
		if word, text = next(text, false); word == "" {
			return words
		}
		words = append(words, word)
	}
}

func appendCode(words []string, text string) []string {
	for {
		var name string
		if name, text = next(text, true); name == "" {
			return words
		}
		if name = strings.Trim(name, "_"); name == "" {
			continue
		}
		words = append(words, strings.ToLower(name))
		for rest := name; rest != ""; {
			var part string
			part, rest = nextPart(rest)
			if part == name {
				break
			}
			words = append(words, strings.ToLower(part))
		}
	}
}
