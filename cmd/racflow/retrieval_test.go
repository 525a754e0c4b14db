package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/model"
)

const passagesFile = `
variable "analyzer" { default = "standard" }
variable "embedder" { default = "hashing" }
knowledge "passages" {
  source {
    path = %q
    %s
  }
  embed { use = var.embedder }
  store {
    use      = "local"
    analyzer = var.analyzer
  }
}
pipeline "passages" {
  input {
    path = %q
    text = "query"
    gold = "doc_ids"
  }
  retrieve "near" {
    from  = knowledge.passages
    top_k = 100
  }
}
`

// passages writes a pipeline over public data, which may not be part of the
// project: it is looked for beside the checkout.
func passages(t *testing.T, set, corpus, columns string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("reads thousands of texts")
	}
	data, err := filepath.Abs(filepath.Join("../../../shared/data", set))
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{"scifact": "queries_test_public.jsonl", "anthropic_codebases": "queries_public.jsonl"}[set]
	corpus, queries = filepath.Join(data, corpus), filepath.Join(data, queries)
	if _, err := os.Stat(queries); err != nil {
		t.Skip("the data is not here: ", err)
	}
	file := filepath.Join(t.TempDir(), "passages.hcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, passagesFile, corpus, columns, queries), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// compared returns what the last list of each row of a comparison is worth, by
// the row's values.
func compared(t *testing.T, dir string, args ...string) map[string]eval.Ranking {
	t.Helper()
	out, err := racflow(t, dir, append([]string{"eval", "--json"}, args...)...).Output()
	if err != nil {
		failed := new(exec.ExitError)
		errors.As(err, &failed)
		t.Fatalf("%v\n%s", err, failed.Stderr)
	}
	var table struct{ Rows []eval.Row }
	if err := json.Unmarshal(out, &table); err != nil {
		t.Fatal(err)
	}
	all := map[string]eval.Ranking{}
	for _, r := range table.Rows {
		if got := r.Report.Retrieval; got.Failed+got.Without+got.Absent > 0 {
			t.Errorf("%s: %+v", r.Set, got)
		}
		stages := r.Report.Retrieval.Stages
		all[strings.Join(r.Set, " ")] = stages[len(stages)-1]
	}
	return all
}

// The parts of identifiers are worth four points to BM25 over source code.
func TestIdentifiers(t *testing.T) {
	file := passages(t, "anthropic_codebases", "chunks.jsonl", "")
	found := compared(t, t.TempDir(), "--sweep", "var.analyzer=standard,code", "--sweep", "near.mode=lexical", "--k", "20", file)
	standard, code := found["standard lexical"].Recall[0].Share, found["code lexical"].Recall[0].Share
	if code < standard+.04 {
		t.Errorf("recall at 20 is %.4f with the analyzer standard and %.4f with code", standard, code)
	}
}

// wantMiniLM skips a test that embeds for minutes unless it is asked for.
func wantMiniLM(t *testing.T) {
	t.Helper()
	if os.Getenv("RACFLOW_RETRIEVAL") == "" {
		t.Skip("set RACFLOW_RETRIEVAL=1 to measure it")
	}
	if minilm, err := model.Find("minilm"); err == nil {
		if status, err := minilm.Status(); err != nil || !status.Installed {
			t.Skip("the model is not here: racflow model pull minilm")
		}
	}
}

// Both sides together find more than either alone. This embeds five thousand
// abstracts, which takes minutes.
func TestHybrid(t *testing.T) {
	wantMiniLM(t)
	file := passages(t, "scifact", "corpus.jsonl", `context = "title"`)
	found := compared(t, t.TempDir(), "-var", "embedder=minilm", "-var", "analyzer=english", "--ablate", "dense,lexical", file)
	whole := found["nothing"].NDCG
	t.Logf("nDCG@10 %.4f; dense alone %.4f, lexical alone %.4f", whole, found["lexical"].NDCG, found["dense"].NDCG)
	if whole < .67 || whole <= found["dense"].NDCG || whole <= found["lexical"].NDCG {
		t.Errorf("nDCG@10 %.4f is below 0.67 or below a side alone", whole)
	}
}
