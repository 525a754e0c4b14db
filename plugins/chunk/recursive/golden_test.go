package recursive

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{"size": 100}`, "3 1e0a579a728c8454") }
