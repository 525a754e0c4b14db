package rerank

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

// TestRealServer asks llama.cpp, as started by .ci/llm. Its model is noise, and scores depend on the server's other
// work: only the format is real.
func TestRealServer(t *testing.T) {
	address := os.Getenv("RACFLOW_TEST_RERANK")
	if address == "" {
		t.Skip("RACFLOW_TEST_RERANK is not set; .ci/llm with go test ... sets it")
	}
	it := httpItem("the card is lost", "weather", "lost card", "", "Größe")
	// With and without the version in the address: the server has both.
	for _, address := range []string{address, strings.TrimSuffix(address, "/v1")} {
		for _, most := range []int{0, 2, 1} {
			host := &apitest.Host{}
			r := openAt(t, host, fmt.Sprintf(`{"api": "llamacpp", "base_url": %q, "max_documents": %d}`, address, most))
			ranked, err := r.one(t, it)
			if err != nil {
				t.Fatal(err)
			}
			var order []int
			for _, r := range ranked {
				order = append(order, r.Candidate)
			}
			if slices.Sort(order); !slices.Equal(order, []int{0, 1, 2, 4}) {
				t.Errorf("ranked %v", ranked)
			}
			if host.Spent(t).InputTokens == 0 {
				t.Error("it cost nothing")
			}
			best := func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) }
			if !slices.IsSortedFunc(ranked, best) || ranked[0].Score == ranked[3].Score {
				t.Errorf("ranked %v", ranked)
			}
		}
	}
	// A document that is too long for the server.
	long := httpItem("the card is lost", strings.Repeat("long ", 1e4))
	r := openAt(t, nil, fmt.Sprintf(`{"api": "llamacpp", "base_url": %q, "max_characters": 50000}`, address))
	if _, err := r.one(t, long); sdk.CodeOf(err) != sdk.CodeRefused || !strings.Contains(err.Error(), "lower max_characters") {
		t.Errorf("got %v", err)
	}
}
