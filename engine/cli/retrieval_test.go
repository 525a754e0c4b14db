package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/plugin/model"
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

// passages writes a pipeline over public data.
func passages(b *testing.B, corpus, queries, columns string) string {
	b.Helper()
	text := fmt.Sprintf(passagesFile, sharedData(b, corpus), columns, sharedData(b, queries))
	return filepath.Join(folder(b, map[string]string{"passages.hcl": text}), "passages.hcl")
}

// compared returns the figures of the last list in each row of a comparison, by the row's values.
func compared(t testing.TB, dir string, args ...string) map[string]eval.Ranking {
	t.Helper()
	out, _ := good(t, racflow(t, dir, append([]string{"eval", "--json"}, args...)...))
	all := map[string]eval.Ranking{}
	for _, r := range jsonLines[struct{ Rows []eval.Row }](t, out)[0].Rows {
		if got := r.Report.Retrieval; got.Failed+got.Without+got.Absent > 0 {
			t.Errorf("%s: %+v", r.Set, got)
		}
		stages := r.Report.Retrieval.Stages
		all[strings.Join(r.Set, " ")] = stages[len(stages)-1]
	}
	return all
}

// BenchmarkIdentifiers shows the value of identifier parts for BM25 over source code.
func BenchmarkIdentifiers(b *testing.B) {
	file := passages(b, "anthropic_codebases/chunks.jsonl", "anthropic_codebases/queries_public.jsonl", "")
	for b.Loop() {
		found := compared(b, b.TempDir(), "--sweep", "var.analyzer=standard,code", "--sweep", "near.mode=lexical", "--k", "20", file)
		b.ReportMetric(found["standard lexical"].Recall[0].Share, "recall@20-standard")
		b.ReportMetric(found["code lexical"].Recall[0].Share, "recall@20-code")
	}
}

// wantMiniLM skips a benchmark that embeds by the model if the model is missing.
func wantMiniLM(b *testing.B) {
	b.Helper()
	if minilm, err := model.Find("minilm"); err == nil {
		if status, err := model.StatusOf(minilm.Name); err != nil || !status.Installed {
			b.Skip("the model is not here: racflow model pull minilm")
		}
	}
}

// BenchmarkHybrid compares both legs together with each leg alone, on five thousand abstracts.
func BenchmarkHybrid(b *testing.B) {
	wantMiniLM(b)
	file := passages(b, "scifact/corpus.jsonl", "scifact/queries_test_public.jsonl", `context = "title"`)
	for b.Loop() {
		found := compared(b, b.TempDir(), "-var", "embedder=minilm", "-var", "analyzer=english", "--ablate", "dense,lexical", file)
		for without, unit := range map[string]string{"nothing": "nDCG@10", "lexical": "nDCG@10-dense", "dense": "nDCG@10-lexical"} {
			b.ReportMetric(found[without].NDCG, unit)
		}
	}
}
