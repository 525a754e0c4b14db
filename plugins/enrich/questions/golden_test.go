package questions

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Asking(t, Stage(), "1 2a90a0f5f06225ba") }
