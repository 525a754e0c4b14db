package code

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{"size": 100}`, "2 b025fbc66dbdfdf7") }
