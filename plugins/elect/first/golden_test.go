package first_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/first"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, first.Stage(), `{}`, "1 22012f2431d39b33") }
