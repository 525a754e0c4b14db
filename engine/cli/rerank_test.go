package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRerankService reranks by a service: one request per item, never again for
// what is kept, and the built-in reranker where the service refuses.
func TestRerankService(t *testing.T) {
	const key = "rk-hush-hush"
	var calls, down atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var asked struct {
			Query     string
			Documents []string
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/rerank" || r.Header.Get("Authorization") != "Bearer "+key || down.Load() > 0 {
			http.Error(w, `{"message": "not for `+r.Header.Get("Authorization")+`"}`, http.StatusForbidden)
			return
		}
		var results []string
		for i, d := range asked.Documents {
			results = append(results, fmt.Sprintf(`{"index": %d, "relevance_score": %d}`, i, len(d)))
		}
		fmt.Fprintf(w, `{"results": [%s], "usage": {"total_tokens": 10}}`, strings.Join(results, ","))
	}))
	defer server.Close()
	dir := folder(t, map[string]string{
		"docs.jsonl": `{"id": "a", "text": "a card"}` + "\n" + `{"id": "b", "text": "the longest card of all"}` + "\n" + `{"id": "c", "text": "some card"}` + "\n",
		"in.jsonl":   `{"id": "1", "text": "card"}` + "\n" + `{"id": "2", "text": "a card"}` + "\n" + `{"id": "3", "text": "some card"}` + "\n",
		"p.hcl": `
variable "address" {}
knowledge "k" {
  source { path = "docs.jsonl" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "in.jsonl" }
  retrieve "all" { from = knowledge.k }
  rerank "best" {
    use     = "http"
    top_k   = 2
    retries = 0
    config "http" {
      api      = "jina"
      base_url = var.address
      model    = "m"
      api_key  = secret("RERANK_KEY")
    }
    price { input = 1 }
    fallback "words" {
      when = "failed"
      use  = "local"
    }
  }
}
`})
	run := func(flags ...string) (first []string, stderr string) {
		t.Helper()
		c := racflow(t, dir, append([]string{"run", "-var", "address=" + server.URL + "/v1", "p.hcl"}, flags...)...)
		c.Env = append(os.Environ(), "RERANK_KEY="+key)
		stdout, stderr := good(t, c)
		for _, result := range jsonLines[struct{ Candidates []struct{ ID string } }](t, stdout) {
			if len(result.Candidates) != 2 {
				t.Fatalf("%+v", result)
			}
			first = append(first, result.Candidates[0].ID)
		}
		if strings.Contains(stdout+stderr, "hush") {
			t.Errorf("the key is reported:\n%s%s", stdout, stderr)
		}
		return first, stderr
	}
	for range 2 {
		if first, stderr := run(); strings.Join(first, "") != "bbb" || calls.Load() != 3 {
			t.Errorf("first %v after %d calls\n%s", first, calls.Load(), stderr)
		}
	}
	down.Store(1)
	if first, stderr := run("--refresh"); strings.Join(first, "") != "aac" && strings.Join(first, "") != "cac" || calls.Load() != 6 {
		t.Errorf("without the service first %v after %d calls\n%s", first, calls.Load(), stderr)
	}
	checkFiles(t, dir, key)
}
