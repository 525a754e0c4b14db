package context

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/api/apitest"
	"github.com/racflow/racflow/sdk"
)

// TestRealServer asks llama.cpp, as .ci/llm with starts it. Its model is noise:
// what counts is that it takes the requests, and that the slot which has read the
// document has it in its cache for another one.
func TestRealServer(t *testing.T) {
	address := os.Getenv("RACFLOW_TEST_LLM")
	if address == "" {
		t.Skip("RACFLOW_TEST_LLM is not set; .ci/llm with go test ... sets it")
	}
	host := &apitest.Host{}
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny", "max_tokens": 8, "timeout": "5m"}`, address)
	stage, err := Stage().Open(t.Context(), sdk.Setup{Host: host}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	passages := document("guide", strings.Repeat("A lost card is blocked. ", 20), "A new one comes by mail.", "It is free.")
	_, err = stage.(sdk.Enricher).Enrich(t.Context(), passages)
	var rows sdk.RowErrors
	if err != nil && !errors.As(err, &rows) {
		t.Fatal(err)
	}
	for row, err := range rows { // noise may say nothing
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "wrote nothing") && !strings.Contains(err.Error(), "cut off") {
			t.Errorf("row %d: %v", row, err)
		}
	}
	outcomes := host.Results(t)
	if len(outcomes) != 3 {
		t.Fatalf("%d requests", len(outcomes))
	}
	cached := 0
	for i, o := range outcomes {
		t.Logf("request %d: %+v", i, o.Usage)
		if o.Status != sdk.StatusOK {
			t.Errorf("request %d: %+v", i, o)
		}
		if o.Usage.CachedTokens > o.Usage.InputTokens/3 {
			cached++
		}
	}
	if cached == 0 {
		t.Error("no request found the document in the cache")
	}
}
