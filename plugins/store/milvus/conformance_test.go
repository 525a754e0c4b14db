package milvus

import (
	"fmt"
	"os"
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

// What TestConformanceElsewhere reads from the environment: the config of a
// stage as JSON, whether the server has no sparse vectors, and whether its
// scores depend on how many queries there are in a call.
const (
	configVariable    = "RACFLOW_MILVUS_CONFIG"
	denseOnlyVariable = "RACFLOW_MILVUS_DENSE_ONLY"
	roundingVariable  = "RACFLOW_MILVUS_ROUNDING"
)

// TestConformanceElsewhere runs the suite against a server that runs already,
// as .ci/milvus-engines does with several.
func TestConformanceElsewhere(t *testing.T) {
	config := os.Getenv(configVariable)
	if config == "" {
		t.Skipf("%s is not set", configVariable)
	}
	var options []sdktest.Option
	if os.Getenv(denseOnlyVariable) != "" {
		options = append(options, sdktest.DenseOnly("the server has no sparse vectors"))
	}
	if os.Getenv(roundingVariable) != "" {
		options = append(options, sdktest.Without("together/many searches", "the last digit of a score depends on the other queries of a call"))
	}
	sdktest.Stage(t, Stage(), config, options...)
}
