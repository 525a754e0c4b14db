package fewshot

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/racflow/racflow/sdk"
)

// Example is a labelled example.
type Example struct {
	Text, Label string
}

// First returns the first n candidates that have a text and a label.
func First(candidates []sdk.Candidate, n int) []Example {
	var all []Example
	for _, c := range candidates {
		if len(all) < n && c.Text != "" && c.Label != "" {
			all = append(all, Example{Text: OneLine(c.Text), Label: OneLine(c.Label)})
		}
	}
	return all
}

// OneLine replaces runs of white space and control characters by one space: a line break
// inside a text would look like the end of an example.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// HasWord reports whether a text has a letter or a digit.
func HasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// Clip is the beginning of a text, of at most so many characters.
func Clip(text string, characters int) string {
	n := 0
	for i := range text {
		if n == characters {
			return text[:i]
		}
		n++
	}
	return text
}

// Allowed returns the labels that may be answered without none, which may be one of the
// labels of the knowledge, too.
func Allowed(labels []string, none string) []string {
	if none == "" || !slices.Contains(labels, none) {
		return labels
	}
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return label == none })
}

// Each writes the prompts of items one by one. An error is that of its item alone: the
// others' prompts come with sdk.RowErrors.
func Each(items []sdk.Item, write func(sdk.Item) ([]sdk.Prompt, error)) ([][]sdk.Prompt, error) {
	prompts := make([][]sdk.Prompt, len(items))
	failed := sdk.RowErrors{}
	for i, item := range items {
		var err error
		if prompts[i], err = write(item); err != nil {
			prompts[i], failed[i] = nil, err
		}
	}
	if len(failed) > 0 {
		return prompts, failed
	}
	return prompts, nil
}

// JSON is the JSON of a text or of texts, as models write it: HTML is not escaped.
func JSON[T string | []string](value T) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // texts always can be
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
