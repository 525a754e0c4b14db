package answer

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
)

// Options say how far a text may be from the label that it stands for. The
// zero Options take only what is written exactly so.
type Options struct {
	// Normalise takes a text for the label that is equal to it but for case,
	// spaces, underscores and hyphens, if there is one such label.
	Normalise bool
	// Nearest takes a text that is no label for the one that shares most of its
	// words, if their F1 is at least this: between 0 and 1, 0 is off. Two labels
	// that share as much leave the text as it is.
	Nearest float64
}

// Read returns the answer that a model's text holds to a prompt, with weight 1.
//
// A prompt without Fields is answered by a line: the text up to the first
// newline behind its first word. One with Fields is answered by a JSON object,
// of which only sdk.LabelProperty counts; text and code fences around it are
// passed over. What a model thought aloud is no part of its answer. A text that is the prompt's None gives an answer without a label,
// which is a vote for none of them.
//
// A prompt with Passages is answered by the whole text, line breaks and all, if it
// cites passages, and only those that there are: see Citations. Options do not
// count then, and None may have a full stop, quotes, emphasis and citations, or not.
func Read(text string, p sdk.Prompt, o Options) sdk.Answer {
	text = strings.TrimSpace(text[Thoughts(text):])
	if text == "" {
		return refused("the model wrote nothing")
	}
	if p.Passages != nil {
		return cited(text, p)
	}
	if p.Fields != nil {
		var fault string
		if text, fault = property(text); fault != "" {
			return refused(fault)
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return sdk.Answer{Label: meant(strings.TrimSpace(line), p, o), Weight: 1}
}

// Thoughts is where a model's text ends that it thought aloud, in bytes: behind the
// last </think>, or at the end where <think> begins the text and is not closed.
func Thoughts(text string) int {
	const opened, closed = "<think>", "</think>"
	if at := strings.LastIndex(text, closed); at >= 0 {
		return at + len(closed)
	}
	if strings.HasPrefix(strings.TrimSpace(text), opened) {
		return len(text)
	}
	return 0
}

// cited reads the answer to a prompt with passages.
func cited(text string, p sdk.Prompt) sdk.Answer {
	if p.None != "" && strings.EqualFold(bare(bracket.ReplaceAllString(text, "")), bare(p.None)) {
		return sdk.Answer{Weight: 1}
	}
	numbers, stray := Citations(text, len(p.Passages))
	switch {
	case len(p.Passages) == 0: // it is to cite nothing
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

// bare is a sentence without what may stand around it.
func bare(text string) string {
	return strings.Join(strings.Fields(strings.Trim(text, " \t\r\n.!\"'`*_“”„«»")), " ")
}

func refused(reason string) sdk.Answer { return sdk.Answer{Weight: 1, Reason: reason} }

// meant returns the label that a text stands for: one of those allowed, "" for
// none of them, or the text itself.
func meant(text string, p sdk.Prompt, o Options) string {
	if p.None != "" && text == p.None {
		return ""
	}
	for _, label := range p.Labels {
		if label == text {
			return label
		}
	}
	for _, label := range p.Labels {
		// A line cannot hold such a label otherwise, and prompts show it so.
		if line := strings.Join(strings.Fields(label), " "); line != label && line == text {
			return label
		}
	}
	names := p.Labels
	if p.None != "" {
		names = append(names[:len(names):len(names)], p.None)
	}
	found, ok := "", false
	if o.Normalise {
		found, ok = same(text, names)
	}
	if !ok && o.Nearest > 0 {
		found, ok = nearest(text, names, o.Nearest)
	}
	switch {
	case !ok:
		return text
	case p.None != "" && found == p.None:
		return ""
	}
	return found
}
