package soft_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/soft"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, soft.Stage(), `{}`, "1 b89839a4841a7ace") }
