package context

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Asking(t, Stage(), "1 86f5bac3cad2bcae") }
