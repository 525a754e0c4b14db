package values

import "github.com/racflow/racflow/engine/tune/crossval"

// Tried is what came of trying the values of a target.
type Tried struct {
	Target
	// Values are those that were tried, the first of them that of the file; means
	// are in the Choice.
	Values []string
	Choice crossval.Choice
}

// Best is the value that replaces that of the file; ok: it is better by more than chance.
func (t Tried) Best() (value string, ok bool) {
	return t.Values[t.Choice.Best], t.Choice.Best > 0 && t.Choice.Gain.Better()
}
