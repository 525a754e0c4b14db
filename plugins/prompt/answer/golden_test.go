package answer_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/plugins/prompt/answer"
)

func TestGolden(t *testing.T) { golden.Check(t, answer.Stage(), `{}`, "1 2cf893489a499347") }
