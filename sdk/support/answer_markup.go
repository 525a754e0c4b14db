package support

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// block begins a heading or a list item. No digit may follow: "- 5" may be a number, and "2. 5",
	// too.
	block = Pattern(`^[ \t]*(?:#{1,6}|[-*+•]|\d{1,3}[.)])[ \t]+(?:[^\d\s]|$)`)
	// fenceLine begins or ends code. Its line has nothing else, except the name of a language.
	fenceLine = Pattern("(?m)^[ \t]*(?:```+|~~~+)[ \t]*([A-Za-z0-9_+-]*)[ \t]*\r?$")
	// element is a text within one tag, <answer>label</answer>.
	element = Pattern(`(?s)^<([A-Za-z][\w:-]*)>(.*)</([A-Za-z][\w:-]*)>$`)
)

// unmark replaces the Markdown marks of a line by spaces: headings, bullets, pairs of emphasis or
// backticks, and backslashes before punctuation. Marks of text that is struck out stay.
func unmark(line string) string {
	if !strings.ContainsAny(line, "#-*+•`_\\).") {
		return line
	}
	out := []byte(line)
	if at := block().FindStringIndex(line); at != nil {
		_, size := utf8.DecodeLastRuneInString(line[:at[1]])
		if at[1] == len(line) {
			size = 0
		}
		space(out[:at[1]-size])
	}
	for i := 0; i+1 < len(out); i++ {
		if out[i] == '\\' && out[i+1] < utf8.RuneSelf && unicode.IsPunct(rune(out[i+1])) {
			out[i] = ' '
		}
	}
	type run struct{ at, n int }
	var open []run
	for at := 0; at < len(out); {
		c, n := out[at], 1
		if c != '*' && c != '_' && c != '`' {
			at++
			continue
		}
		for at+n < len(out) && out[at+n] == c {
			n++
		}
		before, _ := utf8.DecodeLastRuneInString(line[:at])
		after, _ := utf8.DecodeRuneInString(line[at+n:])
		opens, closes := at+n < len(out) && !unicode.IsSpace(after) && before != '\\', at > 0 && !unicode.IsSpace(before) && before != '\\'
		if c == '_' { // within a word it counts as a letter
			opens, closes = opens && !(at > 0 && isWordPart(before)), closes && !(at+n < len(out) && isWordPart(after))
		}
		pair := -1
		for i := len(open) - 1; closes && i >= 0 && pair < 0; i-- {
			if o := open[i]; line[o.at] == c && o.n == n {
				pair = i
			}
		}
		switch {
		case pair >= 0:
			space(out[open[pair].at : open[pair].at+n])
			space(out[at : at+n])
			open = open[:pair]
		case opens && len(open) < maxOpen:
			open = append(open, run{at, n})
		}
		at += n
	}
	return string(out)
}

// maxOpen bounds the number of open marks of a line.
const maxOpen = 64

// quotes are pairs in which texts are quoted.
var quotes = map[rune]string{
	'"': `"`, '\'': "'", '“': "”", '‘': "’", '„': "“”", '‚': "‘’", '«': "»", '»': "«", '‹': "›", '›': "‹", '「': "」", '『': "』", '”': "”", '’': "’",
}

// checkMarks are those that say yes, or point at an answer.
const checkMarks = "✅☑✔✓👉"

// latex is a text within a command of LaTeX that boxes or sets it.
var latex = Pattern(`^[\s$(\[]*\\(?:boxed|fbox|text|text(?:bf|it|rm|tt)|math(?:bf|it|rm|tt))\s*\{(.*)\}[\s$)\]]*$`)

// peel takes a final full stop, a pair of quotes, a check mark or a command of LaTeX from a text, and says
// which.
func peel(text string) (from, to int, how string, ok bool) {
	last, size := utf8.DecodeLastRuneInString(text)
	first, opening := utf8.DecodeRuneInString(text)
	if m := latex().FindStringSubmatchIndex(text); m != nil {
		return m[2], m[3], "LaTeX", m[2] < m[3]
	}
	switch rest := text[:len(text)-size]; {
	case strings.ContainsRune(checkMarks, first):
		from = len(text) - len(strings.TrimPrefix(text[opening:], "\ufe0f"))
		return from, len(text), "check mark", from < len(text)
	case last == '.' || last == '。':
		if before, _ := utf8.DecodeLastRuneInString(rest); rest == "" || before == last {
			return 0, 0, "", false
		}
		return 0, len(rest), "full stop", true
	case len(text) > opening && strings.ContainsRune(quotes[first], last):
		return opening, len(rest), "quotes", opening < len(rest)
	}
	return 0, 0, "", false
}

// trim returns what of a part of a text is no space.
func trim(text string, from, to int) (int, int) {
	part := text[from:to]
	from += len(part) - len(strings.TrimLeftFunc(part, unicode.IsSpace))
	return from, from + len(strings.TrimSpace(part))
}

// tag opens or closes what a model thinks aloud: <think>, </reasoning>, <seed:think>,
// ◁think▷, [THINK], <|START_THINKING|>, <|end_of_thought|>. Groups: the slash, or how the
// last kind begins, and the name.
var tag = Pattern(`(?i:<(/?)(?:[a-z]+:)?(think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)(?:\s[^<>]*)?>)` +
	`|◁(/?)(think)▷|\[(/?)(THINK)\]|<\|(?i:(start|begin_of|end|end_of)_(thinking|thought))\|>`)

// foundTag is a tag in a text.
type foundTag struct {
	from, to int
	name     string
	closes   bool
}

func marksOf(text string) (all []foundTag) {
	if !strings.ContainsAny(text, "<◁[") {
		return nil
	}
	for _, m := range tag().FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(m); g += 4 {
			if m[g] < 0 {
				continue
			}
			how := strings.ToLower(text[m[g]:m[g+1]])
			all = append(all, foundTag{m[0], m[1], strings.ToLower(text[m[g+2]:m[g+3]]), how == "/" || strings.HasPrefix(how, "end")})
		}
	}
	return all
}

// Thoughts returns where the part of a text ends in which a model thought aloud, in
// bytes: behind the last </think>, or its like, of thoughts that begin the text, and at the
// end where they are not closed. A </think> without a beginning counts too, since prompts
// may have begun the thoughts. Of a text in channels, as open-weight models write it
// (<|channel|>analysis<|message|>...), it is where the final one begins.
func Thoughts(text string) int {
	if from, _, ok := answerFinal(text); ok {
		return from
	}
	marks := marksOf(text)
	first := ""
	if len(marks) > 0 && !marks[0].closes && strings.TrimSpace(text[:marks[0].from]) == "" {
		first = marks[0].name
	}
	end := -1
	for _, m := range marks {
		if m.closes && (m.name == first || m.name == "think" || first == "" && m.name == "thinking") {
			end = m.to
		}
	}
	switch {
	case end >= 0:
		return end
	case first != "":
		return len(text)
	}
	return 0
}

// written returns a text with spaces for what its model thought, wherever that stands, so
// that the rest keeps its place.
func written(text string) string {
	out := []byte(text)
	space(out[:Thoughts(text)])
	if _, to, ok := answerFinal(text); ok {
		space(out[to:])
	}
	open := -1 // the mark that is open
	marks := marksOf(string(out))
	for i, m := range marks {
		switch {
		case open < 0 && !m.closes:
			open = i
		case open < 0: // the prompt may have opened it
			space(out[:m.to])
		case m.closes && m.name == marks[open].name:
			space(out[marks[open].from:m.to])
			open = -1
		}
	}
	if open >= 0 {
		space(out[marks[open].from:])
	}
	return string(out)
}

// space writes spaces over a text.
func space(text []byte) {
	for i := range text {
		text[i] = ' '
	}
}

// Open-weight models write in channels (the harmony format of gpt-oss): in each are messages to the user, or to a tool.
var (
	finalMessage = Pattern(`(?s)(?:<\|channel\|>final|<\|start\|>assistant)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?:<\|[a-z_]+\|>|$)`)
	toolMessage  = Pattern(`(?s) to=[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>(.*?)(?:<\|[a-z_]+\|>|$)`)
)

// stripped are channels of which a server has taken out the tokens.
const (
	strippedBegin = "analysis"
	strippedFinal = "assistantfinal"
)

// answerFinal returns where in a text in channels the answer stands: the last message to the user
// or, where there is none, to a tool. ok: the text is in channels. What the model
// wrote in no channel but that of its thoughts is no answer, and is empty.
func answerFinal(text string) (from, to int, ok bool) {
	if !strings.Contains(text, "<|message|>") {
		if at := strings.LastIndex(text, strippedFinal); at >= 0 && strings.HasPrefix(text, strippedBegin) {
			return at + len(strippedFinal), len(text), true
		}
		return 0, 0, false
	}
	for _, message := range []*regexp.Regexp{finalMessage(), toolMessage()} {
		if all := message.FindAllStringSubmatchIndex(text, -1); len(all) > 0 {
			last := all[len(all)-1]
			return last[2], last[3], true
		}
	}
	return len(text), len(text), true
}
