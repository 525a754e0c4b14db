package enginetest_test

import (
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/sdk/sdktest"
)

// What the engine is tested with keeps what sdk promises.
func TestConformance(t *testing.T) {
	for _, s := range enginetest.Stages() {
		t.Run(s.Name, func(t *testing.T) { sdktest.Stage(t, s, "{}") })
	}
}
