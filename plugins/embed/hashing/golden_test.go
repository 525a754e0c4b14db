package hashing

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{}`, "1 d519274d95aa63d5") }
