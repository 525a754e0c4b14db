package neighbours_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/plugins/sample/neighbours"
)

func TestGolden(t *testing.T) { golden.Check(t, neighbours.Stage(), `{}`, "1 ccd1a286b50d988a") }
