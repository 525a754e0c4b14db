package knowledge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A build that is interrupted while it waits has stored its handles on disk. The next build asks
// for nothing a second time, and forgets the handles once it has committed the results.
func TestResultsThatComeLater(t *testing.T) {
	for name, pend := range map[string]func(*enriched, func()) *int{
		"enrich": func(e *enriched, during func()) *int {
			e.stage.Info.Pends, e.adder.pends = true, during
			return &e.adder.asks
		},
		"embed": func(e *enriched, during func()) *int {
			e.block.Embed.Info.Pends, e.embedder.pends = true, during
			return &e.embedder.asks
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnriched(t, map[string]string{"a.txt": "a bb", "b.txt": "c"})
			dir := filepath.Join(t.TempDir(), "pending")
			ctx, cancel := context.WithCancel(t.Context())
			asks := pend(e, cancel)
			if err := e.opening(ctx, knowledge.Options{Pending: retry.OpenHandles(dir, nil)}); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || *asks != 1 {
				t.Fatalf("%d handles are kept of %d, %v", len(files), *asks, err)
			}
			k := must.Get(knowledge.Open(t.Context(), e.block, e.stages, knowledge.Options{Pending: retry.OpenHandles(dir, nil)}))(t)
			if k.Report.Entries != 3 || k.Report.Unenriched != 0 || *asks != 1 {
				t.Errorf("%+v after %d asks", k.Report, *asks)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
				t.Errorf("%d handles are left, %v", len(files), err)
			}
		})
	}
}

// An enricher that asks in batches gets all documents together; another enricher beside it still
// gets them one by one.
func TestBatchesOfDocuments(t *testing.T) {
	const n = 700
	e := newEnriched(t, numbered(n, "a bb"))
	e.stage.Info.Pends, e.stage.Info.PendsIf = true, "batch"
	other := &adder{add: situate}
	e.stages.enrich["other"] = other
	e.block.Enrich = append(e.block.Enrich, &pipeline.Stage{
		Block: "enrich", Name: "other", Kind: sdk.KindEnrich, Use: "other", Enabled: true, Embedded: true, Lexical: true, Info: sdk.Stage{Name: "other", Network: true},
	})
	book := retry.OpenHandles(filepath.Join(t.TempDir(), "pending"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	e.adder.pends = cancel
	if err := e.opening(ctx, knowledge.Options{Pending: book}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	k := must.Get(knowledge.Open(t.Context(), e.block, e.stages, knowledge.Options{Pending: book}))(t)
	must.Equal(t, "entries, those unenriched, asks and calls", [4]int{2 * n, 0, 1, 1}, [4]int{k.Report.Entries, k.Report.Unenriched, e.adder.asks, len(e.adder.calls)})
	must.Equal(t, "documents of the call", n, len(e.adder.calls[0]))
	for _, documents := range other.calls {
		if len(documents) != 1 {
			t.Fatalf("the other one got %d documents at a time", len(documents))
		}
	}
	if len(other.calls) < n || other.most > 8 {
		t.Errorf("the other one got %d calls, %d at a time", len(other.calls), other.most)
	}
}

func (a *adder) CollectAdditions(ctx context.Context, _ string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return a.find(ctx, passages)
}

func (l *letters) CollectVectors(ctx context.Context, _ string, role sdk.Role, texts []string) ([][]float32, error) {
	return l.find(ctx, role, texts)
}
