package knowledge

import (
	"context"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// enricher adds to passages what one enrich block finds.
type enricher struct {
	stage   *pipeline.Stage
	process Enricher // nil: it is not to be asked, and adds nothing
	slots   chan struct{}
	lost    lost

	mu   sync.Mutex
	asks Asks // of one that is not asked
}

func newEnricher(s *pipeline.Stage, process Enricher) *enricher {
	return &enricher{stage: s, process: process, slots: make(chan struct{}, slotsOf(s)), asks: Asks{Stage: s}}
}

// slotsOf is how many calls of an enrich stage are under way at a time.
func slotsOf(s *pipeline.Stage) int {
	switch {
	case s.Workers > 0:
		return s.Workers
	case !s.Info.Network:
		return 1
	}
	return min(s.Concurrency(), wire.Window)
}

// startEnrichers starts what the enrich blocks say, as far as it is wanted.
func startEnrichers(ctx context.Context, block *pipeline.Knowledge, stages Stages, wanted func(*pipeline.Stage) bool) ([]*enricher, error) {
	var all []*enricher
	for _, s := range block.Enrichers() {
		var process Enricher
		if wanted(s) {
			var err error
			if process, err = stages.Enricher(ctx, s); err != nil {
				return nil, err
			}
		}
		all = append(all, newEnricher(s, process))
	}
	return all, nil
}

func anyStage(*pipeline.Stage) bool { return true }

func local(s *pipeline.Stage) bool { return !s.Info.Network }

// Asks is what an enrich stage that calls a service would be asked.
type Asks struct {
	Stage      *pipeline.Stage
	Passages   int
	Characters int // of the passages, each with its document where the stage shows that
}

// count notes what a service would be asked.
func (e *enricher) count(documents []chunked) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range documents {
		if e.stage.Info.Network {
			e.asks.Passages += len(d.chunks)
			if e.stage.Info.Reads.Has(sdk.ColumnText) {
				e.asks.Characters += len(d.chunks) * utf8.RuneCountInString(d.Text)
			}
			for _, c := range d.chunks {
				e.asks.Characters += utf8.RuneCountInString(d.Text[c.Start:c.End])
			}
		}
	}
}

// countAsks says what services would be asked.
func (b *builder) countAsks() {
	for _, e := range b.enrichers {
		if e.process == nil && e.stage.Info.Network {
			b.Report.Asks = append(b.Report.Asks, e.asks)
		}
	}
}
