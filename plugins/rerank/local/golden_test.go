package local

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{}`, "1 38953921dedb271f") }
