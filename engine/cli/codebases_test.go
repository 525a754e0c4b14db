package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// givenPlugin is the main function of a third-party plugin; see TestMain. Its chunker cuts documents
// after the bytes that their metadata names.
func givenPlugin() {
	type none struct{}
	stage := sdk.ChunkStage("ends", "", func(context.Context, sdk.Setup, none) (sdk.Chunker, error) { return given{}, nil })
	serve.Plugin(sdk.Plugin{Name: "given", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

type given struct{}

func (given) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	all := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		start := 0
		for _, field := range strings.Fields(d.Meta["ends"].(string)) {
			end, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], sdk.Chunk{Start: start, End: end})
			start = end
		}
	}
	return all, nil
}

const codebasesFile = `
variable "path" { default = "embedded" }
knowledge "passages" {
  source { path = "docs.jsonl" }
  chunk { use = "given/ends" }
  enrich "path" {
    use     = "path"
    enabled = var.path != "none"
    embed   = var.path == "embedded"
    config { parts = ["path", "title"] }
  }
  enrich "headings" {
    use     = "path"
    enabled = var.path != "none"
    config { parts = ["headings", "declaration"] }
  }
  embed { use = "minilm" }
  store {
    use      = "local"
    analyzer = "code"
  }
}
pipeline "passages" {
  input {
    path = "queries.jsonl"
    text = "query"
    gold = "gold"
  }
  retrieve "near" {
    from  = knowledge.passages
    top_k = 150
  }
  rerank "best" { use = "local" }
}
`

// BenchmarkCodebases shows the value of a passage's path, embedded or only searched by words, and of
// the reranker, by recall at 5, 10 and 20. These questions were among those that the reranker's
// weights were chosen on.
func BenchmarkCodebases(b *testing.B) {
	wantMiniLM(b)
	dir := codebases(b)
	linkPlugin(b, dir, "given")
	for b.Loop() {
		found := compared(b, dir, "--plugins", ".", "--k", "5,10,20",
			"--sweep", "var.path=none,words,embedded", "--sweep", "near.mode=dense,lexical,hybrid", "--sweep", "rerank.best.enabled=false,true", "passages.hcl")
		for row, ranking := range found {
			for _, r := range ranking.Recall {
				b.ReportMetric(r.Share, fmt.Sprintf("recall@%d:%s", r.K, strings.ReplaceAll(row, " ", "/")))
			}
		}
	}
}

// codebases writes a pipeline over Anthropic's nine codebases. Its documents have repository and
// path. They are cut at the ends of the collection's chunks, so that the gold chunks are entries.
func codebases(t testing.TB) (dir string) {
	t.Helper()
	data := sharedData(t, "anthropic_codebases")
	type row map[string]any
	text := func(r row, name string) string { s, _ := r[name].(string); return s }
	ids := map[string]string{}    // entry ids, by chunk id
	ends := map[string][]string{} // ends of chunks, by document
	bytes := map[string]int{}
	eachLine(t, filepath.Join(data, "chunks.jsonl"), func(r row) {
		d := text(r, "doc_id")
		ids[text(r, "id")] = fmt.Sprintf("%s#%d", d, len(ends[d]))
		bytes[d] += len(text(r, "text"))
		ends[d] = append(ends[d], strconv.Itoa(bytes[d]))
	})
	dir = t.TempDir()
	lines := func(name string, rows []row) {
		var b strings.Builder
		for _, r := range rows {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", line)
		}
		write(t, dir, name, b.String())
	}
	var documents, queries []row
	eachLine(t, filepath.Join(data, "docs.jsonl"), func(r row) {
		if len(text(r, "text")) != bytes[text(r, "id")] {
			t.Errorf("the chunks of %s are not its text", text(r, "id"))
		}
		r["ends"] = strings.Join(ends[text(r, "id")], " ")
		documents = append(documents, r)
	})
	eachLine(t, filepath.Join(data, "queries_public.jsonl"), func(r row) {
		var gold [][]string
		for _, same := range r["gold"].([]any) {
			var entries []string
			for _, id := range same.([]any) {
				entries = append(entries, ids[id.(string)])
			}
			gold = append(gold, entries)
		}
		queries = append(queries, row{"id": r["id"], "query": r["query"], "gold": gold})
	})
	lines("docs.jsonl", documents)
	lines("queries.jsonl", queries)
	write(t, dir, "passages.hcl", codebasesFile)
	return dir
}

// eachLine calls f with each line of a JSONL file.
func eachLine[T any](t testing.TB, path string, f func(T)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for d := json.NewDecoder(bufio.NewReader(file)); d.More(); {
		var row T
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		f(row)
	}
}
