package markdown

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{"size": 100}`, "4 a2623f8ae2dce363") }
