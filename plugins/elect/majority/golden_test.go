package majority_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/elect/majority"
	"github.com/racflow/racflow/plugins/internal/golden"
)

func TestGolden(t *testing.T) { golden.Check(t, majority.Stage(), `{}`, "1 61f154eb9e958c0a") }
