package milvus

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest"
)

// TestConformance runs the suite that every store has to pass.
func TestConformance(t *testing.T) {
	e := startEngine(t)
	config := fmt.Sprintf(`{"address": %q, "index": "FLAT", "retry_time": "20s"}`, e.address)
	sdktest.Stage(t, Stage(), config, sdktest.Restart(func(testing.TB) {
		e.kill()
		e.start()
	}))
}
