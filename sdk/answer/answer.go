package answer

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
)

// Options say how the text of a model is read. The zero Options read it as people would.
type Options struct {
	// Exact takes labels only as they are written, at the beginning of the text.
	Exact bool
	// Nearest takes a text that is no label for the label with the greatest F1 of its
	// words and the text's, if that is at least this: between 0 and 1, 0 is off. A text
	// as near to two labels stays as it is.
	Nearest float64
	// Reasons keeps the texts of the other properties of a JSON object as the answer's
	// Explanation.
	Reasons bool
}

// Read returns the answer that a model's text holds to a prompt, with weight 1.
//
// A prompt without Fields is answered by a line: the text up to the first newline behind
// its first word. One with Fields is answered by a JSON object, of which only
// sdk.LabelProperty counts; text and code fences around it are skipped. What a model
// thought aloud is no part of its answer. A text equal to the prompt's None gives an
// answer without a label, a vote for none of them. Of a list of labels it returns the
// first: see ReadAll.
//
// Unless Options are Exact, a text that is no label of the prompt's Labels is read as
// the package's documentation says, if it can mean only one of them. How it was read
// is in the answer's Reading.
//
// A prompt with Passages is answered by the whole text, line breaks included, if it
// cites passages, and only those that exist: see Citations. Options do not count then,
// and None may come with a full stop, quotes, emphasis and citations.
func Read(text string, p sdk.Prompt, o Options) sdk.Answer { return ReadAll(text, p, o)[0] }

// ReadAll returns all answers that a model's text holds to a prompt, best first. There is
// one, as Read returns it, unless the prompt's Fields have sdk.LabelsProperty: then there
// is one for each label of the list, and they weigh 1, 1/2, 1/3 and so on. A label that
// the list repeats counts where it first stands. An empty list gives one answer without a
// label.
func ReadAll(text string, p sdk.Prompt, o Options) []sdk.Answer {
	if p.Passages != nil {
		if text = strings.TrimSpace(text[Thoughts(text):]); text == "" {
			return []sdk.Answer{refused(Nothing)}
		}
		return []sdk.Answer{cited(text, p)}
	}
	read := newReader(p, o).read(text)
	if read.reason != "" {
		return []sdk.Answer{refused(read.reason)}
	}
	if len(read.labels) == 0 {
		return []sdk.Answer{{Weight: 1, Explanation: read.explanation}}
	}
	var all []sdk.Answer
	seen := map[string]bool{}
	for _, l := range read.labels {
		if !seen[l.label] {
			seen[l.label] = true
			all = append(all, sdk.Answer{Label: l.label, Weight: 1 / float64(len(all)+1), Reading: l.reading})
		}
	}
	all[0].Explanation = read.explanation
	return all
}

// Span returns where in a text its label stands, in bytes, as Read reads it: of what is
// no label, the line. Both are 0 where there is none, and for a list of labels.
func Span(text string, p sdk.Prompt, o Options) (from, to int) {
	r := newReader(p, o)
	if p.Passages != nil || r.lists() {
		return 0, 0
	}
	if read := r.read(text); read.reason == "" && len(read.labels) > 0 {
		return read.labels[0].from, read.labels[0].to
	}
	return 0, 0
}

// Reasons of texts that are no answer, which other packages know them by.
const (
	Nothing = "the model wrote nothing"
	CutOff  = "the answer was cut off; raise max_tokens" // which a reader of texts cannot see
)

// cited reads the answer to a prompt with passages.
func cited(text string, p sdk.Prompt) sdk.Answer {
	if p.None != "" && strings.EqualFold(bare(bracket.ReplaceAllString(text, "")), bare(p.None)) {
		return sdk.Answer{Weight: 1}
	}
	numbers, stray := Citations(text, len(p.Passages))
	switch {
	case len(p.Passages) == 0: // no citations are wanted
	case stray != "":
		return refused(fmt.Sprintf("it cites [%s], which is none of the passages that it was given", stray))
	case len(numbers) == 0:
		return refused("it cites none of the passages")
	case !strings.ContainsFunc(bracket.ReplaceAllString(text, ""), isWord):
		return refused("it cites passages and says nothing")
	}
	return sdk.Answer{Label: text, Weight: 1}
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// bare is a sentence without the quotes, emphasis and full stop around it.
func bare(text string) string {
	return strings.Join(strings.Fields(strings.Trim(text, " \t\r\n.!\"'`*_“”„«»")), " ")
}

func refused(reason string) sdk.Answer { return sdk.Answer{Weight: 1, Reason: reason} }
