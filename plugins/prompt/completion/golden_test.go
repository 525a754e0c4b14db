package completion_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/plugins/prompt/completion"
)

func TestGolden(t *testing.T) { golden.Check(t, completion.Stage(), `{}`, "1 30b7bdaf0a193b3c") }
