package completion

import (
	_ "embed"

	"github.com/racflow/racflow/plugins/internal/fewshot"
)

//go:embed default.tmpl
var defaultTemplate string

// Data is what a template sees of an item. Runs of white space in it are one
// space.
type Data struct {
	Text       string            // the item's
	Random     []fewshot.Example // random examples
	Neighbours []fewshot.Example // nearest last
	Labels     []string          // all labels of the knowledge, sorted; empty with labels = false
	None       string            // the answer that no label fits; empty: not allowed
}

// trials are the data that a template must be able to cope with.
func trials() []any {
	shots := []fewshot.Example{{Text: "text", Label: "label"}}
	return []any{Data{Text: "text", Random: shots, Neighbours: shots, Labels: []string{"label"}, None: "none"}, Data{}}
}
