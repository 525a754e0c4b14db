package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

// givenPlugin is the main function of a third party's plugin; see TestMain. Its
// chunker cuts documents where their metadata says: after those bytes.
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
knowledge "passages" {
  source { path = "docs.jsonl" }
  chunk { use = "given/ends" }
  enrich "place" { use = "path" }
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

// Where a passage stands is worth three points among the first five and one among
// the first twenty. The reranker, whose weights were chosen on these questions among
// others, is worth two points among the first five, with and without it, and more among
// the first twenty than the lower end of its cross-validated gain.
// This embeds seven hundred chunks of source code twice.
func TestCodebases(t *testing.T) {
	wantMiniLM(t)
	dir := codebases(t)
	if err := os.Symlink("racflow", filepath.Join(dir, "racflow-plugin-given")); err != nil {
		t.Fatal(err)
	}
	found := compared(t, dir, "--plugins", ".", "--k", "5,10,20",
		"--sweep", "enrich.place.enabled=false,true", "--sweep", "near.mode=dense,lexical,hybrid", "--sweep", "rerank.best.enabled=false,true", "passages.hcl")
	at := func(k int, row string) float64 {
		for _, r := range found[row].Recall {
			if r.K == k {
				return r.Share
			}
		}
		t.Fatalf("no recall at %d of %q", k, row)
		return 0
	}
	for _, row := range slices.Sorted(maps.Keys(found)) {
		t.Logf("context, mode, rerank %-20s recall at 5, 10, 20: %.4f %.4f %.4f", row, at(5, row), at(10, row), at(20, row))
	}
	for _, c := range []struct {
		k       int
		without string
		with    string
		gain    float64 // at least
	}{
		{5, "false hybrid false", "true hybrid false", .03},
		{20, "false hybrid false", "true hybrid false", .01},
		{5, "false hybrid false", "false hybrid true", .02},
		{5, "true hybrid false", "true hybrid true", .02},
		{5, "false hybrid true", "true hybrid true", .03},
		{20, "true hybrid false", "true hybrid true", .008},
		{20, "true dense false", "true hybrid false", .01},
		{20, "true lexical false", "true hybrid false", .01},
	} {
		if without, with := at(c.k, c.without), at(c.k, c.with); with < without+c.gain {
			t.Errorf("recall at %d is %.4f with %q and %.4f with %q: less than %.2f more", c.k, without, c.without, with, c.with, c.gain)
		}
	}
}

// codebases writes a pipeline over Anthropic's nine codebases: documents with
// repository and path, which are cut where the chunks of the collection end, so
// that its gold chunks are entries.
func codebases(t *testing.T) (dir string) {
	t.Helper()
	data, err := filepath.Abs("../../../shared/data/anthropic_codebases")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(data); err != nil {
		t.Skip("the data is not here: ", err)
	}
	type row map[string]any
	text := func(r row, name string) string { s, _ := r[name].(string); return s }
	ids := map[string]string{}    // of entries, by the id of the chunk
	ends := map[string][]string{} // of chunks, by document
	bytes := map[string]int{}
	eachLine(t, filepath.Join(data, "chunks.jsonl"), func(r row) {
		d := text(r, "doc_id")
		ids[text(r, "id")] = fmt.Sprintf("%s#%d", d, len(ends[d]))
		bytes[d] += len(text(r, "text"))
		ends[d] = append(ends[d], strconv.Itoa(bytes[d]))
	})
	dir = t.TempDir()
	write := func(name string, rows []row) {
		var b strings.Builder
		for _, r := range rows {
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s\n", line)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
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
	write("docs.jsonl", documents)
	write("queries.jsonl", queries)
	if err := os.WriteFile(filepath.Join(dir, "passages.hcl"), []byte(codebasesFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// eachLine calls f with each line of a JSONL file.
func eachLine[T any](t *testing.T, path string, f func(T)) {
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
