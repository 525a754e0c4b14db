package sentences

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, Stage(), `{"size": 100}`, "2 1ad15b29ce20b6c0") }
