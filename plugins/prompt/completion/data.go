package completion

import (
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/fewshot"
)

//go:embed default.tmpl
var defaultTemplate string

// Data is what a template can use. Runs of white space in it are one space.
type Data struct {
	Text       string            // the item's
	Random     []fewshot.Example // random examples
	Neighbours []fewshot.Example // nearest last
	Labels     []string          // all labels of the knowledge, sorted; empty with labels = false
	None       string            // the answer that no label fits; empty: not allowed
}

// samples are the data that templates are tried with.
func samples() []any {
	shots := []fewshot.Example{{Text: "text", Label: "label"}}
	return []any{Data{Text: "text", Random: shots, Neighbours: shots, Labels: []string{"label"}, None: "none"}, Data{}}
}
