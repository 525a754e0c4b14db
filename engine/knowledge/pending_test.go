package knowledge_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/sdk"
)

// A build that is interrupted while it waits has its handles on the disk; the next one
// asks for nothing a second time, and forgets them when it has committed the results.
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
			t.Run("interrupted", func(t *testing.T) { // its processes end with it
				own := e.stages
				own.t = t
				if _, err := knowledge.Open(ctx, e.block, own, knowledge.Options{Pending: pending.NewBook(dir, nil)}); !errors.Is(err, context.Canceled) {
					t.Fatalf("error %v", err)
				}
			})
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || *asks != 1 {
				t.Fatalf("%d handles are kept of %d, %v", len(files), *asks, err)
			}
			k, err := knowledge.Open(t.Context(), e.block, e.stages, knowledge.Options{Pending: pending.NewBook(dir, nil)})
			if err != nil {
				t.Fatal(err)
			}
			if k.Report.Entries != 3 || k.Report.Unenriched != 0 || *asks != 1 {
				t.Errorf("%+v after %d asks", k.Report, *asks)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
				t.Errorf("%d handles are left, %v", len(files), err)
			}
		})
	}
}

func (a *adder) CollectAdditions(ctx context.Context, _ string, passages []sdk.Passage) ([]sdk.Addition, error) {
	return a.find(ctx, passages)
}

func (l *letters) CollectVectors(ctx context.Context, _ string, role sdk.Role, texts []string) ([][]float32, error) {
	return l.find(ctx, role, texts)
}
