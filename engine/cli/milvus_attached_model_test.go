package cli

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// sameShots shows a model examples, including random ones, from collections whose ids are those of
// the rows: its prompts are the same as with the embedded store.
func (f *foreign) sameShots(names ...string) {
	t := f.t
	f.write("shown.jsonl", every(28, foreignRows(t, "test.tsv")))
	asked := func(file string) []string {
		prompts := map[string]bool{}
		server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "card_lost" }})
		results, _ := f.run(file, "--pipeline", "shown", "--refresh", "-var", "url="+server.URL, "--input", "shown.jsonl")
		for _, r := range results {
			if r.Answer != "card_lost" {
				t.Errorf("%s: %+v", file, r)
			}
		}
		for _, a := range server.Asks() {
			prompts[a.Text()] = true
		}
		return slices.Sorted(maps.Keys(prompts))
	}
	want := asked("embedded.hcl")
	if len(want) != 10 || strings.Count(want[0], "\nLabel:") < 20 {
		t.Fatalf("%d prompts: %q", len(want), want)
	}
	for _, name := range names {
		if d := cmp.Diff(asked(f.attach(name, "")), want); d != "" {
			t.Errorf("%s: prompts (-attached +embedded):\n%s", name, d)
		}
	}
}

// TestMilvusAttachedAsk asks a model that answers from passages of collections of documents, and
// measures the retrieval. Both are compared with the embedded store.
func TestMilvusAttachedAsk(t *testing.T) {
	f := startForeign(t, chunks(t), `context = "context"`)
	names := []string{"langchain", "llama"}
	f.make(names...)
	questions := absolute(t, "../../examples/docs/questions.tsv")
	server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "At most 30 seconds [1]." }})
	ask := func(file string) (answer result.Result, prompts []string, figures string) {
		before := server.Calls()
		c, said := f.command("ask", file, "--pipeline", "asked", "--format", "json", "--refresh", "-var", "url="+server.URL)
		c.Args = append(c.Args, "how long does the gateway wait when it is shut down?")
		out, err := c.Output()
		if err != nil || json.Unmarshal(out, &answer) != nil || len(answer.Citations) == 0 {
			t.Fatalf("%s: %v\n%s%s", file, err, out, said)
		}
		for _, a := range server.Asks()[before:] {
			prompts = append(prompts, a.Whole())
		}
		c, said = f.command("eval", file, "--pipeline", "found", "--input", questions, "--k", "1,5,10")
		if out, err = c.Output(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, said)
		}
		_, figures, _ = strings.Cut(string(out), "FOUND BY")
		figures, _, _ = strings.Cut(figures, "\n\n")
		return answer, prompts, figures
	}
	answer, prompts, figures := ask("embedded.hcl")
	if !strings.Contains(figures, "retrieve.near") || len(prompts) == 0 || !strings.Contains(prompts[0], "30 seconds") {
		t.Errorf("the model sees %q, and eval says %q", prompts, figures)
	}
	for _, name := range names {
		gotAnswer, gotPrompts, gotFigures := ask(f.attach(name, `fields { context = "context" }`))
		if d := cmp.Diff(gotAnswer, answer); d != "" {
			t.Errorf("%s: answer (-attached +embedded):\n%s", name, d)
		}
		if d := cmp.Diff(gotPrompts, prompts); d != "" {
			t.Errorf("%s: prompts (-attached +embedded):\n%s", name, d)
		}
		if gotFigures != figures {
			t.Errorf("%s: eval says\n%s\nwant\n%s", name, gotFigures, figures)
		}
	}
}

// chunks returns the chunks of the example documents as contextual.hcl cuts them.
func chunks(t *testing.T) (rows []map[string]any) {
	t.Helper()
	dir := folder(t, map[string]string{"items.tsv": "text\nlease\n"})
	c := racflow(t, dir, "run", "-var", "embedder=hashing", "--input", "items.tsv", absolute(t, "../../pipelines/contextual.hcl"))
	c.Env = append(os.Environ(), "RACFLOW_MODEL=")
	must(t, c)
	rows = jsonLines[map[string]any](t, entriesOf(t, dir, "docs"))
	for _, row := range rows {
		maps.DeleteFunc(row, func(key string, _ any) bool { // langchain-milvus makes a field of each key, which every row then needs
			return !slices.Contains([]string{"id", "text", "context", "document", "path", "title", "start", "end"}, key)
		})
	}
	return rows
}
