package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/show/report"
)

// The values that the embedder has resolved are shown beside its config in the file.
func TestGenerationsShowWhatWasResolved(t *testing.T) {
	var out bytes.Buffer
	list := report.NewGenerations(&out)
	list.Add("k", "local", &generation.History{Generations: []generation.Generation{{Collection: "k-1", State: generation.Current,
		Origin: generation.Origin{Embedder: "e", Config: []byte(`{"model":"m","precision":"auto"}`), Resolved: []byte(`{"precision":"half"}`)}}}})
	if err := list.Table(); err != nil || !strings.Contains(out.String(), " e precision=half model=m ") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := list.JSON(); err != nil || !strings.Contains(out.String(), `"config":{"model":"m","precision":"auto"},"resolved":{"precision":"half"}`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// For a collection of another program, nothing was recorded.
func TestGenerationsShowAttached(t *testing.T) {
	var out bytes.Buffer
	list := report.NewGenerations(&out)
	list.Add("k", "theirs", &generation.History{Generations: []generation.Generation{{Collection: "docs", State: generation.Attached, Entries: 7, Current: true,
		Origin: generation.Origin{Embedder: "e"}}}})
	if err := list.Table(); err != nil || strings.Contains(out.String(), "?") || !strings.Contains(out.String(), "attached  7        -      -        -            e         its owner's  its owner's") {
		t.Errorf("%v: %s", err, &out)
	}
}
