package prototype_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/plugins/sample/prototype"
)

func TestGolden(t *testing.T) { golden.Check(t, prototype.Stage(), `{}`, "1 edcac355026ab15c") }
