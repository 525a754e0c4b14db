package cli

import (
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
)

func TestDescribeAttached(t *testing.T) {
	a := &attached.Report{Collection: "docs", Lexical: true, Embedder: "minilm", Sample: 50000, Compared: 50, Cosine: 0.9876}
	got := describeKnowledge(knowledge.BuildReport{Entries: 1000000, Attached: a})
	if want := "1000000 entries in collection docs, read only; a sample of 50000 entries, mean cosine 0.988 with the vectors of minilm over 50 entries"; got != want {
		t.Errorf("%s", got)
	}
	if a.Doubt() != "" {
		t.Errorf("%q", a.Doubt())
	}
}
