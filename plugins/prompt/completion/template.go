package completion

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/racflow/racflow/sdk"
)

//go:embed default.tmpl
var defaultTemplate string

// Data is what a template sees of an item. Runs of white space in it are one
// space: a line break inside a text would read as the end of an example.
type Data struct {
	Text       string   // the item's
	Random     []Shot   // random examples
	Neighbours []Shot   // nearest last
	Labels     []string // all labels of the knowledge, sorted; empty with labels = false
}

// Shot is a labelled example.
type Shot struct {
	Text, Label string
}

// prompt is a template with the text that it was read from.
type prompt struct {
	*template.Template
	text string
}

// loadTemplate reads and checks a template; an empty path gives the default.
func loadTemplate(path sdk.Path) (prompt, error) {
	name, text := "default.tmpl", defaultTemplate
	if path != "" {
		file, err := os.ReadFile(string(path))
		if err != nil {
			return prompt{}, err
		}
		name, text = filepath.Base(string(path)), string(file)
	}
	t, err := template.New(name).Funcs(template.FuncMap{"join": strings.Join}).Parse(text)
	if err != nil {
		return prompt{}, err
	}
	// An unknown field shows only when it is reached: try it with every list
	// filled and with every list empty.
	shots := []Shot{{Text: "text", Label: "label"}}
	full := Data{Text: "text", Random: shots, Neighbours: shots, Labels: []string{"label"}}
	for _, data := range []Data{full, {}} {
		if err := t.Execute(io.Discard, data); err != nil {
			return prompt{}, err
		}
	}
	return prompt{t, text}, nil
}

// write fills in the template.
func (p prompt) write(data Data) (sdk.Prompt, error) {
	var text strings.Builder
	if err := p.Execute(&text, data); err != nil {
		return sdk.Prompt{}, sdk.Invalid(fmt.Errorf("the prompt could not be written: %w", err))
	}
	// Models continue worse after trailing space: their tokens begin with it.
	return sdk.Prompt{Text: strings.TrimSpace(text.String())}, nil
}
