package enrich

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/knowledge/units"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// Enrichers are those of a knowledge, in the order of their blocks. They remember what
// failed, so they serve one build, with all its tries.
type Enrichers []*enricher

// enricher adds to passages what one enrich block finds.
type enricher struct {
	stage   *pipeline.Stage
	process stages.Enricher // nil: it is not asked, and adds nothing
	slots   chan struct{}   // of calls under way
	later   *stages.Later

	mu     sync.Mutex
	failed map[string]failure // by the document's id
	first  error              // of failed: there may be as many as passages
	asks   Asks               // of one that is not asked

	forecaster sdk.EnrichForecaster // of one that is not asked; nil: it does not say
}

// Forecasters say what stages would take that are not asked.
type Forecasters map[*pipeline.Stage]sdk.EnrichForecaster

// New makes the enrichers of a block of what stages.Start has started; nil asks none
// of them, and counts what they would be asked.
func New(block *pipeline.Knowledge, processes []stages.Enricher, later *stages.Later) Enrichers {
	var all Enrichers
	if later == nil {
		later = &stages.Later{}
	}
	for i, s := range block.Enrichers() {
		e := &enricher{stage: s, slots: make(chan struct{}, slotsOf(s)), failed: map[string]failure{}, asks: Asks{Stage: s}, later: later}
		if processes != nil {
			e.process = processes[i]
		}
		all = append(all, e)
	}
	return all
}

// Foresee has the enrichers that are not asked say what they would take.
func (all Enrichers) Foresee(by Forecasters) Enrichers {
	for _, e := range all {
		if e.forecaster = by[e.stage]; e.forecaster != nil {
			e.asks.Forecast = &sdk.Forecast{}
		}
	}
	return all
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

// Asks is what an enrich stage that calls a service would be asked.
type Asks struct {
	Stage      *pipeline.Stage
	Passages   int
	Characters int           // of the passages, each with its document where the stage shows that
	Forecast   *sdk.Forecast // what it says of these; nil: it says nothing
}

// Asks returns what services would be asked about the documents that came by.
func (all Enrichers) Asks() (asks []Asks) {
	for _, e := range all {
		if e.process == nil && e.stage.Info.Network {
			asks = append(asks, e.asks)
		}
	}
	return asks
}

// count notes what a service would be asked.
func (e *enricher) count(documents []units.Document) error {
	if !e.stage.Info.Network {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range documents {
		e.asks.Passages += len(d.Chunks)
		if e.stage.Info.Reads.Has(sdk.ColumnText) {
			e.asks.Characters += len(d.Chunks) * utf8.RuneCountInString(d.Text)
		}
		for _, c := range d.Chunks {
			e.asks.Characters += utf8.RuneCountInString(c.In(d.Text))
		}
		if e.forecaster == nil {
			continue
		}
		f, err := e.forecaster.ForecastPassages(d.Passages())
		if err != nil {
			return e.named(err)
		}
		e.asks.Forecast.Add(f)
	}
	return nil
}

// CheckNames reports a block whose additions would take the place of metadata that
// the source has.
func (all Enrichers) CheckNames(meta sdk.Meta) error {
	for _, e := range all {
		if _, taken := meta[e.stage.Name]; taken && !e.stage.Lexical {
			return fmt.Errorf("enrich.%s: with lexical = false additions are kept as metadata under the block's name, and the source has a column %q; give the block another name", e.stage.Name, e.stage.Name)
		}
	}
	return nil
}

// named names the enricher in an error, unless its process has.
func (e *enricher) named(err error) error {
	if by := "enrich." + e.stage.Name + ": "; !strings.HasPrefix(err.Error(), by) {
		return fmt.Errorf("%s%w", by, err)
	}
	return err
}
