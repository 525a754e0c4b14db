package context

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Asking(t, Stage(), "2 9810c2fea68cd40e") }
