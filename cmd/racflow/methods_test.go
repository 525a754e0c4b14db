package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/sample/openai/openaitest"
)

// method runs a file of pipelines/ against a server of the test and returns
// the results.
func method(t *testing.T, server *openaitest.Server, file string, args ...string) []map[string]any {
	t.Helper()
	path, err := filepath.Abs("../../pipelines/" + file)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"run", "-var", "model=test-model", "-var", "base_url=" + server.URL}, args...)
	c := racflow(t, t.TempDir(), append(args, path)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var results []map[string]any
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var r map[string]any
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}

// The labels of the neighbours are the only ones that RAC allows and accepts,
// and what is outside them is asked for again, three times in all.
func TestRAC(t *testing.T) {
	server := openaitest.Serve(t, openaitest.Options{Answer: func(a openaitest.Ask, _ int) string {
		if strings.Contains(a.Text(), "robot") { // never acceptable
			return `{"reasoning": "hm", "label": "of my own"}`
		}
		return fmt.Sprintf(`{"reasoning": "the third", "label": %q}`, a.Labels[2])
	}})
	results := method(t, server, "rac.hcl", "-var", "embedder=hashing", "--limit", "4")
	asked := map[string][]openaitest.Ask{}
	for _, a := range server.Asks() {
		asked[a.Text()] = append(asked[a.Text()], a)
	}
	if len(results) != 4 || len(asked) != 4 {
		t.Fatalf("%d results, %d questions", len(results), len(asked))
	}
	for _, r := range results {
		asks := asked[r["text"].(string)]
		first := asks[0]
		if len(first.Messages) != 12 || !slices.Equal(first.Fields, []string{"reasoning", "label"}) || len(first.Labels) < 5 || len(first.Labels) > 30 {
			t.Errorf("asked %d messages for %v among %v", len(first.Messages), first.Fields, first.Labels)
		}
		nearest := first.Messages[len(first.Messages)-2].Content
		if !strings.HasSuffix(nearest, fmt.Sprintf(`"label": %q}`, first.Labels[0])) {
			t.Errorf("the last turn %s is not the nearest, which is of %s", nearest, first.Labels[0])
		}
		if strings.Contains(r["text"].(string), "robot") {
			if r["answer"] != nil || r["flagged"] != true || len(asks) != 3 || len(r["votes"].([]any)) != 3 {
				t.Errorf("asked %d times: %v", len(asks), r)
			}
			continue
		}
		if r["answer"] != first.Labels[2] || r["flagged"] != false || len(asks) != 1 {
			t.Errorf("asked %d times: %v, want %s", len(asks), r, first.Labels[2])
		}
	}
}

// Nothing that is retrieved reaches the zero-shot prompt, which begins alike for
// all items.
func TestZeroShot(t *testing.T) {
	server := openaitest.Serve(t, openaitest.Options{Answer: func(a openaitest.Ask, _ int) string {
		if strings.Contains(a.Text(), "robot") {
			return `{"label": "none"}`
		}
		return `{"label": "card_lost"}`
	}})
	results := method(t, server, "zero-shot.hcl", "-var", "none=none", "--limit", "4")
	for i, a := range server.Asks() {
		if len(a.Messages) != 2 || a.Messages[0] != server.Asks()[0].Messages[0] || len(a.Labels) != 41 || !slices.Equal(a.Fields, []string{"label"}) {
			t.Errorf("request %d: %d messages, %v among %d", i, len(a.Messages), a.Fields, len(a.Labels))
		}
		if labels := strings.Count(a.Messages[0].Content, "\n- "); labels != 41 { // and "label"
			t.Errorf("request %d lists %d labels and properties", i, labels)
		}
	}
	for _, r := range results {
		var want any = "card_lost"
		reason, _ := r["reason"].(string)
		if strings.Contains(r["text"].(string), "robot") {
			want = nil
		}
		if r["answer"] != want || (want == nil) != strings.Contains(reason, "none of the labels") {
			t.Errorf("%v", r)
		}
	}
	if len(results) != 4 || server.Calls() != 4 {
		t.Errorf("%d results of %d calls", len(results), server.Calls())
	}
}

// The setting of the paper: a prompt of its own for each of the six samples,
// whose random examples differ and whose neighbours do not.
func TestRAGE(t *testing.T) {
	server := openaitest.Serve(t, openaitest.Options{Answer: func(openaitest.Ask, int) string { return "card_lost\nText: more" }})
	results := method(t, server, "intent.hcl", "-var", "embedder=hashing", "-var", "election=majority", "-var", "redraw=sample", "--limit", "2")
	const marked = "\nLabel: "
	shots := map[string]map[string]bool{} // all random examples, by item
	ends := map[string]map[string]bool{}
	for _, a := range server.Asks() {
		text := a.Text()
		parts := strings.Split(text, "\nText: ")[1:]
		item := strings.TrimSuffix(parts[len(parts)-1], "\nLabel:")
		if a.N != 1 || len(parts) != 31 || strings.Count(text, marked) != 30 {
			t.Fatalf("n = %d, %d texts in\n%s", a.N, len(parts), text)
		}
		if shots[item] == nil {
			shots[item], ends[item] = map[string]bool{}, map[string]bool{}
		}
		for _, shot := range parts[:10] {
			shots[item][shot] = true
		}
		ends[item][strings.Join(parts[10:], "|")] = true
	}
	for _, r := range results {
		item := r["text"].(string)
		// 560 utterances, of which two may have the same text.
		if len(shots[item]) < 58 || len(ends[item]) != 1 {
			t.Errorf("%q: %d random examples in six prompts, %d lists of neighbours", item, len(shots[item]), len(ends[item]))
		}
		if r["answer"] != "card_lost" || r["agreement"].(float64) < .74 {
			t.Errorf("six of eight votes: %v", r)
		}
	}
	if len(results) != 2 || server.Calls() != 12 {
		t.Errorf("%d results of %d calls", len(results), server.Calls())
	}
}

// Without a model the files that need one say so, and point at it.
func TestMethodsNeedAModel(t *testing.T) {
	for _, file := range []string{"rac.hcl", "zero-shot.hcl"} {
		path, err := filepath.Abs("../../pipelines/" + file)
		if err != nil {
			t.Fatal(err)
		}
		out, err := racflow(t, t.TempDir(), "run", "-var", "model=", "--limit", "1", path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "var.model") || !strings.Contains(string(out), "model of openai") {
			t.Errorf("%s: error %v\n%s", file, err, out)
		}
	}
}
