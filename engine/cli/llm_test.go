package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestLanguageModelVotes runs the intent pipeline with a model behind a server
// of the test: its answers are counted, off-list ones are not, and the key
// reaches the server and nothing else.
func TestLanguageModelVotes(t *testing.T) {
	const key = "sk-hush-hush"
	var mu sync.Mutex
	var prompts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			N        int
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, `{"error": {"message": "bad key `+r.Header.Get("Authorization")+`"}}`, http.StatusUnauthorized)
			return
		}
		mu.Lock()
		if !strings.Contains(r.Header.Get("User-Agent"), "probe") {
			prompts = append(prompts, asked.Messages[0].Content)
		}
		mu.Unlock()
		answers := []string{"card_lost", " card_lost\nText: and on", "no label of ours"}
		choices := make([]string, asked.N)
		for i := range choices {
			choices[i] = fmt.Sprintf(`{"index": %d, "message": {"role": "assistant", "content": %q}}`, i, answers[i%3])
		}
		fmt.Fprintf(w, `{"choices": [%s], "usage": {"prompt_tokens": 100, "completion_tokens": 12}}`, strings.Join(choices, ","))
	}))
	defer server.Close()
	dir := t.TempDir()
	run := func(apiKey string, flags ...string) (result map[string]any, stderr string) {
		c := racflow(t, dir, append([]string{"run", "-var", "embedder=hashing", "-var", "election=soft", "-var", "model=test-model", "-var", "base_url=" + server.URL + "/v1", "--limit", "1", intent(t)}, flags...)...)
		c.Env = append(os.Environ(), "OPENAI_API_KEY="+apiKey, "RACFLOW_LOG=debug")
		_, stdout, stderr := ran(t, c) // the exit code is 3 where the item fails
		if err := json.Unmarshal([]byte(stdout), &result); err != nil {
			t.Fatalf("%v in %q\n%s", err, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, "hush") {
			t.Errorf("the key is reported:\n%s%s", stdout, stderr)
		}
		return result, stderr
	}

	result, _ := run(key)
	accepted := map[bool]int{}
	for _, v := range result["votes"].([]any) {
		if vote := v.(map[string]any); vote["voter"] == "llm" {
			accepted[vote["accepted"].(bool)]++
			if answer := vote["answer"].(string); strings.Contains(answer, "\n") || strings.HasPrefix(answer, " ") {
				t.Errorf("answer %q", answer)
			}
		}
	}
	if accepted[true] != 4 || accepted[false] != 2 {
		t.Errorf("votes of the model by acceptance: %v, want 4 and 2 in %v", accepted, result["votes"])
	}
	if result["answer"] != "card_lost" {
		t.Errorf("answer %v: three voters, one of which is sure of card_lost", result["answer"])
	}
	if len(prompts) == 0 || !strings.Contains(prompts[0], result["text"].(string)) || strings.Count(prompts[0], "\nLabel:") < 20 {
		t.Errorf("the prompt holds no shots or not the item:\n%q", prompts)
	}

	result, stderr := run("sk-wrong-hush", "--refresh") // else the kept answers serve
	if failure, _ := result["error"].(map[string]any); failure == nil || failure["stage"] != "sample.llm" || !strings.Contains(stderr, "api_key") {
		t.Errorf("with a wrong key: %v\n%s", result, stderr)
	}

	checkFiles(t, dir, key)
}
