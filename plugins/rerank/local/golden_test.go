package local

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{}`, "2 07b58c9eb9ccc42e") }
