package normalizer

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// form is one of Unicode's normalisation forms.
type form norm.Form

func (f form) apply(text string, _ Edges) (string, bool) { return f.string(text), false }
func (form) local() bool                                 { return true }

// string returns text in the form. Package norm breaks sequences of more than 30 marks by
// a joiner, which Unicode's forms do not know: texts with such are put together here.
func (f form) string(text string) string {
	const joiner = "\u034f"
	s := norm.Form(f).String(text)
	if strings.Count(s, joiner) == strings.Count(text, joiner) {
		return s
	}
	decompose, compose := norm.NFD, f == form(norm.NFC) || f == form(norm.NFKC)
	if f == form(norm.NFKC) || f == form(norm.NFKD) {
		decompose = norm.NFKD
	}
	var chars []rune
	for _, r := range text {
		chars = append(chars, []rune(decompose.String(string(r)))...)
	}
	sortMarks(chars)
	if compose {
		chars = composed(chars)
	}
	return string(chars)
}

// class is the canonical combining class.
func class(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }

// sortMarks puts the marks between others into the order of their classes.
func sortMarks(chars []rune) {
	for start := 0; start < len(chars); start++ {
		end := start
		for end < len(chars) && class(chars[end]) != 0 {
			end++
		}
		slices.SortStableFunc(chars[start:end], func(a, b rune) int { return cmp.Compare(class(a), class(b)) })
		start = end
	}
}

// composed joins marks with what they stand on, where a character for both exists, in
// place.
func composed(chars []rune) []rune {
	out := chars[:0]
	starter, last := -1, uint8(0) // in out; the class of the mark that was kept behind it
	for _, r := range chars {
		c := class(r)
		if starter >= 0 && (last < c || last == 0 && starter == len(out)-1) {
			if pair := []rune(norm.NFC.String(string([]rune{out[starter], r}))); len(pair) == 1 {
				out[starter] = pair[0]
				continue
			}
		}
		if c == 0 {
			starter = len(out)
		}
		last = c
		out = append(out, r)
	}
	return out
}
