package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// batcher is a voter that asks in batches if its argument says so. At first it answers only one in
// ten items.
type batcher struct {
	late bool

	mu    sync.Mutex
	calls []int // items of each call
	jobs  []int
}

type batcherConfig struct {
	Batch bool `config:"batch" doc:"Ask in batches."`
}

func (b *batcher) answer(items []sdk.Item) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(items))
	for i, item := range items {
		label := "good"
		if item.Drawn == 0 && !strings.HasSuffix(item.Text, "0") {
			label = "bad"
		}
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: label, Weight: 1}}}}
	}
	return samples, nil
}

func (b *batcher) Sample(_ context.Context, batch sdk.Batch) ([][]sdk.Sample, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, len(batch.Items))
	if !b.late {
		return b.answer(batch.Items)
	}
	b.jobs = append(b.jobs, len(batch.Items))
	return nil, &sdk.Pending{Handle: fmt.Sprint("job ", len(b.jobs)), PollAfter: time.Hour}
}

func (b *batcher) CollectSamples(_ context.Context, _ string, batch sdk.Batch) ([][]sdk.Sample, error) {
	return b.answer(batch.Items)
}

// A stage that asks in batches gets all items that reach it in one call, and the items to ask about
// again in another call. Other stages get their items as usual. Without the argument, each item is a
// call.
func TestBatches(t *testing.T) {
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	for _, test := range []struct {
		config, block, whole string
		calls, jobs          []int
	}{
		{"batch = true", "", "", []int{800, 700}, []int{800, 700}},
		{"batch = true", "batch = 500", "", []int{500, 300, 500, 200}, []int{500, 300, 500, 200}},
		{"batch = true", "", "batch = 600", []int{480, 320, 420, 280}, []int{480, 320, 420, 280}},
		{"batch = false", "", "", slices.Repeat([]int{1}, 1500), nil},
		{"", "", "", slices.Repeat([]int{1}, 1500), nil},
	} {
		t.Run(strings.Join([]string{test.config, test.block, test.whole}, ","), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var voter batcher
				var mu sync.Mutex
				most := 0
				catalog := append(enginetest.Catalog(enginetest.Stages()),
					sdk.SampleStage("batcher", "", func(_ context.Context, _ sdk.Setup, c batcherConfig) (sdk.Sampler, error) {
						voter.late = c.Batch
						return &voter, nil
					}, sdk.Reads(sdk.ColumnText), sdk.Network(), sdk.PreferBatch(1), sdk.PendsIf("batch")),
					sdk.SampleStage("local", "", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
						return sampler(func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
							mu.Lock()
							defer mu.Unlock()
							most = max(most, len(b.Items))
							return make([][]sdk.Sample, len(b.Items)), nil
						}), nil
					}, sdk.Reads(sdk.ColumnText)))
				r, err := runtest.Open(t, catalog, run.Options{Options: stage.Options{Pending: retry.OpenHandles(t.TempDir(), nil)}}, map[string]string{runtest.File: fmt.Sprintf(`
pipeline "p" {
  %s
  sample "local" { use = "local" }
  sample "v" {
    use       = "batcher"
    %s
    when      = "not (item.text matches '[38]$')"
    accept    = "answer == 'good'"
    resamples = 1
    config { %s }
  }
  elect "e" { use = "majority" }
}`, test.whole, test.block, test.config)})
				must.Do(t, err)
				at := 0
				totals, err := r.Items(t.Context(), runtest.Feed(texts...), nil, runtest.Each(func(r outcome.Result) error {
					if r.Text != texts[at] {
						return errors.New("the order is another: " + r.Text)
					}
					at++
					return nil
				}))
				if err != nil || totals.Answered != 800 || totals.Items != 1000 {
					t.Errorf("%+v, %v", totals, err)
				}
				if test.config != "batch = true" { // their order is random
					slices.Sort(voter.calls)
				}
				slices.SortFunc(voter.calls, func(a, b int) int { return b - a })
				slices.SortFunc(voter.jobs, func(a, b int) int { return b - a })
				slices.SortFunc(test.calls, func(a, b int) int { return b - a })
				slices.SortFunc(test.jobs, func(a, b int) int { return b - a })
				must.Equal(t, "calls", test.calls, voter.calls)
				must.Equal(t, "batches", test.jobs, voter.jobs)
				if most > 64 {
					t.Errorf("another stage got %d items at a time", most)
				}
			})
		})
	}
}
