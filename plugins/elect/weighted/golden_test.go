package weighted_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/weighted"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) {
	golden.Check(t, weighted.Stage(), `{"accuracy": {"llm": 0.9}}`, "1 03b6c54aa2ba47ad")
}
