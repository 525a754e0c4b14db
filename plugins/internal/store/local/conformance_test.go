package local

import (
	"testing"

	"github.com/racflow/racflow/sdk/sdktest"
)

// TestConformance does not wait for the disk: a process that is killed loses nothing
// for that, and the tests of crashes wait.
func TestConformance(t *testing.T) { sdktest.Stage(t, Stage(), `{"sync": false}`) }
