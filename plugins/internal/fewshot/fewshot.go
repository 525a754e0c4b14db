package fewshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Tokens estimates the number of tokens of a text.
func Tokens(text string) int { return sdk.EstimateTokens(utf8.RuneCountInString(text)) }

// MessageTokens estimates the number of tokens of a chat's messages.
func MessageTokens(messages []sdk.Message) int {
	sum := 0
	for _, m := range messages {
		sum += Tokens(m.Text)
	}
	return sum
}

// Fit returns the prompt with as many examples as fit into a budget of tokens; a budget of 0 has no bound. write
// writes the prompt with a number of examples and returns its tokens; more examples must not make the prompt shorter.
// If the prompt is too long even without examples, Fit returns an error.
func Fit(examples, budget int, write func(examples int) (sdk.Prompt, int, error)) (sdk.Prompt, error) {
	prompt, tokens, err := write(examples)
	if err != nil || budget == 0 || tokens <= budget {
		return prompt, err
	}
	// A binary search: a prompt may have hundreds of examples.
	dropped := 1 + sort.Search(examples, func(i int) bool {
		prompt, tokens, err = write(examples - 1 - i)
		return err != nil || tokens <= budget
	})
	if dropped > examples {
		_, tokens, err = write(0)
		if err != nil {
			return sdk.Prompt{}, err
		}
		return sdk.Prompt{}, sdk.Invalid(fmt.Errorf("the prompt is about %d tokens long without any example, max_tokens is %d; "+
			"raise it, or list fewer labels", tokens, budget))
	}
	prompt, _, err = write(examples - dropped)
	return prompt, err
}

// Example is a labelled example.
type Example struct {
	Text, Label string
}

// Examples returns the candidates that have a text and a label.
func Examples(candidates []sdk.Candidate) (all []Example) {
	for _, c := range candidates {
		if c.Text != "" && c.Label != "" {
			all = append(all, Example{Text: OneLine(c.Text), Label: OneLine(c.Label)})
		}
	}
	return all
}

// First returns the first n different examples: copies of a row teach a model nothing.
func First(candidates []sdk.Candidate, n int) (all []Example) {
	for _, e := range Examples(candidates) {
		if len(all) < n && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// OneLine replaces runs of white space and control characters by one space: a line break inside a text would look
// like the end of an example.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// HasWord reports whether a text has a letter or a digit.
func HasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// Clip returns the beginning of a text, with at most the given number of characters.
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

// Allowed returns the allowed labels without none, which may also be a label of the knowledge.
func Allowed(labels []string, none string) []string {
	if none == "" || !slices.Contains(labels, none) {
		return labels
	}
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return label == none })
}

// Meanings returns the descriptions of labels, by label; nil: there are none.
func Meanings(described map[string]sdk.Described) map[string]string {
	var all map[string]string
	for label, d := range described {
		if text := OneLine(cmp.Or(d.Text, d.Name)); text != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[label] = text
		}
	}
	return all
}

// Each writes the prompts of items one by one. An error affects only its item: the prompts of the others come with
// sdk.RowErrors.
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

// JSON encodes a text or texts as models write JSON, without escaping HTML.
func JSON[T string | []string](value T) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // texts can always be encoded
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// Template is a Go text/template with its source. Beside Go's built-in functions it may use join. What one prompt may
// use is bounded.
type Template struct {
	template *template.Template
	text     string
}

// Load reads the template of an argument; an empty path means the fallback. An unknown field is found only if
// execution reaches it. So Load executes the template with each of the samples: give one with every list filled, and
// one with every list empty. Errors are sdk.ArgumentErrors.
func Load(argument string, path sdk.Path, fallback string, samples ...any) (Template, error) {
	t, err := load(path, fallback, samples)
	if err != nil {
		return t, &sdk.ArgumentError{Argument: argument, Err: err}
	}
	return t, nil
}

func load(path sdk.Path, fallback string, samples []any) (Template, error) {
	name, text := "default.tmpl", fallback
	if path != "" {
		file, err := readFile(string(path))
		if err != nil {
			return Template{}, err
		}
		name, text = filepath.Base(string(path)), strings.TrimPrefix(string(file), "\ufeff") // of editors on Windows
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{"join": strings.Join}).Parse(text)
	if err == nil {
		err = guard(parsed)
	}
	if err != nil {
		return Template{}, err
	}
	for _, data := range samples {
		_, err := execute(parsed, data)
		if exceeded := new(boundError); errors.As(err, &exceeded) {
			return Template{}, err
		}
		if err != nil {
			return Template{}, fmt.Errorf("%w; there are %s", err, fields(data))
		}
	}
	return Template{template: parsed, text: text}, nil
}

// readFile reads the file of a template.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe may never end
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	file, err := io.ReadAll(io.LimitReader(f, maxTemplate+1))
	if len(file) > maxTemplate {
		err = fmt.Errorf("%s is larger than %d KiB: a template is what stands around the texts, not the texts", path, maxTemplate>>10)
	}
	return file, err
}

// fields lists the fields that a template can use.
func fields(data any) string {
	var all []string
	for _, f := range reflect.VisibleFields(reflect.Indirect(reflect.ValueOf(data)).Type()) {
		if f.IsExported() {
			all = append(all, "."+f.Name)
		}
	}
	return strings.Join(all, ", ")
}

// shows reports whether the template writes a text that is part of data.
func (t Template) shows(text string, data any) bool {
	written, err := t.Write(data)
	return err == nil && strings.Contains(written, text)
}

// Fingerprint changes with the template's text. A stage's output depends on the text, but its arguments contain only
// the path.
func (t Template) Fingerprint() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(t.text))) }

// Write executes the template and trims white space around the result: models continue worse after trailing white
// space, since their tokens begin with it.
func (t Template) Write(data any) (string, error) {
	text, err := execute(t.template, data)
	if err != nil {
		return "", sdk.Invalid(fmt.Errorf("the prompt could not be written: %w", err))
	}
	return strings.TrimSpace(text), nil
}

// Pair holds the templates of a chat's system message and of its last message.
type Pair struct{ System, Prompt Template }

// Passage is a sample passage between delimiters, as in prompts.
const Passage = "<chunk>\nx\n</chunk>"

// LoadPair loads the templates of the arguments system and prompt. The prompt must show the named field, whose value
// in the first sample is Passage; shown says how to write this.
func LoadPair(system, prompt sdk.Path, defaults [2]string, field, shown string, samples ...any) (Pair, error) {
	s, systemErr := Load("system", system, defaults[0], samples...)
	p, promptErr := Load("prompt", prompt, defaults[1], samples...)
	if promptErr == nil && !p.shows(Passage, samples[0]) {
		promptErr = &sdk.ArgumentError{Argument: "prompt", Err: fmt.Errorf("it does not show %s, so that the model would not see the passage; write {{%s}} where it should stand", field, shown)}
	}
	return Pair{s, p}, errors.Join(systemErr, promptErr)
}

// Fingerprint changes with either text.
func (p Pair) Fingerprint() string { return p.System.Fingerprint() + " " + p.Prompt.Fingerprint() }
