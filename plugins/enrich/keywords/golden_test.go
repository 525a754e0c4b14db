package keywords

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Asking(t, Stage(), "1 757a4889557c60d2") }
