package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// late is a voter whose service takes an hour.
type late struct {
	mu    sync.Mutex
	asked int // items
}

func (l *late) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked += len(b.Items)
	return nil, &sdk.Pending{Handle: fmt.Sprint("batch ", l.asked), PollAfter: time.Hour}
}

func (l *late) CollectSamples(_ context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: handle + ", " + item.Text, Weight: 1}}}}
	}
	return samples, nil
}

// forgetful is a journal that keeps nothing.
type forgetful struct{ err error }

func (forgetful) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }
func (f forgetful) Keep([]outcome.Result) error              { return f.err }

// An interrupted run ends at once, and the next one collects what was asked for. The
// handle goes once the journal has the results, and not before.
func TestResultsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		voter, dir := &late{}, filepath.Join(t.TempDir(), "pending")
		catalog := append(enginetest.Catalog(enginetest.Stages()), sdk.SampleStage("late", "", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
			return voter, nil
		}, sdk.Reads(sdk.ColumnText), sdk.Pends()))
		items := func(ctx context.Context, journal run.Journal) (answers []string, err error) {
			r, err := runtest.Open(t, catalog, run.Options{Options: stage.Options{Pending: retry.OpenHandles(dir, nil)}}, map[string]string{runtest.File: `
pipeline "p" {
  sample "v" {
    use     = "late"
    timeout = "1s"
  }
  elect "e" { use = "majority" }
}`})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Items(ctx, runtest.Feed("a", "b"), journal, runtest.Each(func(r outcome.Result) error {
				answers = append(answers, r.Answer)
				return nil
			}))
			return answers, err
		}
		left := func() int {
			return len(must.Get(os.ReadDir(dir))(t))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := items(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if voter.asked != 2 || left() != 1 {
			t.Errorf("%d items were asked about, %d handles are kept", voter.asked, left())
		}
		full := errors.New("the disk is full")
		if _, err := items(t.Context(), forgetful{full}); !errors.Is(err, full) || left() != 1 {
			t.Errorf("%v, %d handles are kept", err, left())
		}
		answers, err := items(t.Context(), forgetful{})
		if err != nil || fmt.Sprint(answers) != "[batch 2, a batch 2, b]" {
			t.Errorf("answers %q, %v", answers, err)
		}
		if voter.asked != 2 || left() != 0 {
			t.Errorf("%d items were asked about, %d handles are kept", voter.asked, left())
		}
	})
}
