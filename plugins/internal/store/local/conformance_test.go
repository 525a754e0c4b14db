package local

import (
	"testing"

	"github.com/racflow/racflow/sdk/sdktest"
)

// TestConformance does not wait for the disk: a killed process loses nothing by that, and the tests of crashes do
// wait.
func TestConformance(t *testing.T) { sdktest.Stage(t, Stage(), `{"sync": false}`) }
