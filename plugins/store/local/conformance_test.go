package local

import (
	"testing"

	"github.com/racflow/racflow/sdk/sdktest"
)

func TestConformance(t *testing.T) { sdktest.Stage(t, Stage(), "{}") }
