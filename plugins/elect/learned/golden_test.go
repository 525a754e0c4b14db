package learned_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/learned"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) {
	golden.Check(t, learned.Stage(), `{"weights": {"llm": 3}}`, "2 aaeb35ed2a46a176")
}

// The weights that are learnt are part of what the election gives, too.
func TestGoldenFit(t *testing.T) {
	labels, rows := generate(1, 300)
	golden.Compare(t, learned.Stage(), elect(t, fitted(t, rows[:280]), labels, rows[280:]), "2 c307e2e970e5ac2d")
}
