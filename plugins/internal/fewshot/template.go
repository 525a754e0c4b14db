package fewshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"

	"github.com/racflow/racflow/sdk"
)

// Template is a Go text/template with the text that it was read from. Beside
// what Go has built in it may use join. What one prompt may take is bounded.
type Template struct {
	template *template.Template
	text     string
}

// Load reads the template of an argument; an empty path gives the fallback. An unknown
// field is found only where execution reaches it, so the template is executed with each
// of the samples: give one with every list filled, and one with every list empty. Its
// errors are sdk.ArgumentErrors.
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

// fields names what a template can use.
func fields(data any) string {
	var all []string
	for _, f := range reflect.VisibleFields(reflect.Indirect(reflect.ValueOf(data)).Type()) {
		if f.IsExported() {
			all = append(all, "."+f.Name)
		}
	}
	return strings.Join(all, ", ")
}

// Shows reports whether the template writes a text that is part of data.
func (t Template) Shows(text string, data any) bool {
	written, err := t.Write(data)
	return err == nil && strings.Contains(written, text)
}

// Fingerprint changes with the text: what a stage writes depends on it, and its
// arguments hold only the path.
func (t Template) Fingerprint() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(t.text))) }

// Write executes the template. White space around the result is dropped: models
// continue worse after it, since their tokens begin with it.
func (t Template) Write(data any) (string, error) {
	text, err := execute(t.template, data)
	if err != nil {
		return "", sdk.Invalid(fmt.Errorf("the prompt could not be written: %w", err))
	}
	return strings.TrimSpace(text), nil
}

// Pair are the templates of a chat's system message and of its last one.
type Pair struct{ System, Prompt Template }

// Passage is a passage between delimiters, as prompts show it.
const Passage = "<chunk>\nx\n</chunk>"

// LoadPair loads the templates of the arguments system and prompt. The prompt has to
// show the named field, which is Passage in the first sample; shown is how to write that.
func LoadPair(system, prompt sdk.Path, defaults [2]string, field, shown string, samples ...any) (Pair, error) {
	s, systemErr := Load("system", system, defaults[0], samples...)
	p, promptErr := Load("prompt", prompt, defaults[1], samples...)
	if promptErr == nil && !p.Shows(Passage, samples[0]) {
		promptErr = &sdk.ArgumentError{Argument: "prompt", Err: fmt.Errorf("it does not show %s, so that the model would not see the passage; write {{%s}} where it should stand", field, shown)}
	}
	return Pair{s, p}, errors.Join(systemErr, promptErr)
}

// Fingerprint changes with either text.
func (p Pair) Fingerprint() string { return p.System.Fingerprint() + " " + p.Prompt.Fingerprint() }
