package first_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/first"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, first.Stage(), `{}`, "1 7832a9dfc242d3af") }
