package profile_test

import (
	"os"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/profile"
)

// TestRealServer probes llama.cpp, as started by .ci/llm. The model's answers are noise, but what the server accepts
// is real.
func TestRealServer(t *testing.T) {
	address := os.Getenv("RACFLOW_TEST_LLM")
	if address == "" {
		t.Skip("RACFLOW_TEST_LLM is not set; .ci/llm with go test ... sets it")
	}
	for _, completion := range []bool{false, true} {
		host := &apitest.Host{}
		to := target(t, address, host)
		to.Completion, to.Choices = completion, 6
		p, err := to.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v, by %d calls", p, len(host.Calls()))
		for name, f := range map[string]profile.Finding{"temperature": p.Temperature, "stop": p.Stop, "n": p.N, "seed": p.Seed, "logprobs": p.Logprobs, "usage": p.Usage} {
			if f != profile.Yes {
				t.Errorf("completion %t: %s is %s", completion, name, f)
			}
		}
		if p.Choices != 4 { // it has four slots
			t.Errorf("completion %t: %d choices", completion, p.Choices)
		}
		if !completion && p.Structured != profile.StructureSchema || p.BytesPerToken < 0.5 || p.BytesPerToken > 6 || len(host.Calls()) > profile.MaxCalls {
			t.Errorf("completion %t: %+v", completion, p)
		}
	}
}
