package fewshot

import (
	"crypto/sha256"
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
// what Go has built in it may use join.
type Template struct {
	template *template.Template
	text     string
}

// Load reads a template; an empty path gives the fallback. An unknown field
// shows only when it is reached, so the template is tried with each of the
// samples: give one with every list filled, and one with every list empty.
func Load(path sdk.Path, fallback string, samples ...any) (Template, error) {
	name, text := "default.tmpl", fallback
	if path != "" {
		file, err := os.ReadFile(string(path))
		if err != nil {
			return Template{}, err
		}
		name, text = filepath.Base(string(path)), strings.TrimPrefix(string(file), "\ufeff") // of editors on Windows
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{"join": strings.Join}).Parse(text)
	if err != nil {
		return Template{}, err
	}
	for _, data := range samples {
		if err := parsed.Execute(io.Discard, data); err != nil {
			return Template{}, fmt.Errorf("%w; there are %s", err, fields(data))
		}
	}
	return Template{template: parsed, text: text}, nil
}

// LoadArgument is Load for a path that an argument gives: its errors are ArgumentErrors.
func LoadArgument(argument string, path sdk.Path, fallback string, samples ...any) (Template, error) {
	t, err := Load(path, fallback, samples...)
	if err != nil {
		return t, &sdk.ArgumentError{Argument: argument, Err: err}
	}
	return t, nil
}

// fields names what a template can show.
func fields(data any) string {
	var all []string
	for _, f := range reflect.VisibleFields(reflect.Indirect(reflect.ValueOf(data)).Type()) {
		if f.IsExported() {
			all = append(all, "."+f.Name)
		}
	}
	return strings.Join(all, ", ")
}

// Shows reports whether what is written with data holds a text of it.
func (t Template) Shows(text string, data any) bool {
	written, err := t.Write(data)
	return err == nil && strings.Contains(written, text)
}

// Fingerprint changes with the text, which is no argument of a stage.
func (t Template) Fingerprint() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(t.text))) }

// Write fills in the template. White space around the result is dropped:
// models continue worse after it, as their tokens begin with it.
func (t Template) Write(data any) (string, error) {
	var text strings.Builder
	if err := t.template.Execute(&text, data); err != nil {
		return "", sdk.Invalid(fmt.Errorf("the prompt could not be written: %w", err))
	}
	return strings.TrimSpace(text.String()), nil
}
