package answer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
)

// Options say how much a text may differ from the label that it stands for. The zero
// Options take labels only as they are written.
type Options struct {
	// Normalise takes a text for the one label that differs from it only in case,
	// spaces, underscores and hyphens.
	Normalise bool
	// Nearest takes a text that is no label for the label with the greatest F1 of its
	// words and the text's, if that is at least this: between 0 and 1, 0 is off. A text
	// as near to two labels stays as it is.
	Nearest float64
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
	text = strings.TrimSpace(text[Thoughts(text):])
	if text == "" {
		return []sdk.Answer{refused("the model wrote nothing")}
	}
	if p.Passages != nil {
		return []sdk.Answer{cited(text, p)}
	}
	texts := []string{text}
	if p.Fields != nil {
		var reason string
		if texts, reason = labelsIn(text, p); reason != "" {
			return []sdk.Answer{refused(reason)}
		}
	}
	if len(texts) == 0 {
		return []sdk.Answer{{Weight: 1}}
	}
	var all []sdk.Answer
	for _, text := range texts {
		line, _, _ := strings.Cut(text, "\n")
		label := labelOf(strings.TrimSpace(line), p, o)
		if !slices.ContainsFunc(all, func(a sdk.Answer) bool { return a.Label == label }) {
			all = append(all, sdk.Answer{Label: label, Weight: 1 / float64(len(all)+1)})
		}
	}
	return all
}

// Thoughts returns where the part of a text ends in which a model thought aloud, in
// bytes: behind the last </think>, or at the end where <think> begins the text and is
// not closed.
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

// labelOf returns the label that a text stands for: one of those allowed, "" for none of
// them, or the text itself.
func labelOf(text string, p sdk.Prompt, o Options) string {
	if p.None != "" && text == p.None {
		return ""
	}
	if slices.Contains(p.Labels, text) {
		return text
	}
	for _, label := range p.Labels {
		// Prompts show labels on one line, so the model writes it with single spaces.
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
