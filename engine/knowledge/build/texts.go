package build

import (
	"context"

	"github.com/racflow/racflow/engine/knowledge/enrich"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
)

// Texts calls f with every text that the knowledge would embed if its store were
// empty, but for what services would add. Of the report only the source's share is
// filled in, and what enrichers would be asked.
func Texts(ctx context.Context, block *pipeline.Knowledge, starter stages.Starter, foresee enrich.Forecasters, f func(text string)) (Report, error) {
	set, err := stages.StartLocal(ctx, block, starter)
	if err != nil {
		return reportOf(block), err
	}
	b := newBuilder(&Job{Block: block, Chunker: set.Chunker, Enrichers: enrich.New(block, set.Enrichers, nil).Foresee(foresee)})
	if err := b.Read(ctx); err != nil {
		return b.Report, err
	}
	w := &walk{builder: b}
	err = w.batches(ctx, b.Source.Units, embedBatch, func(m batch) error {
		for _, text := range m.texts() {
			f(text)
		}
		return nil
	})
	b.Report.Documents, b.Report.Asks = w.documentCount(), b.Enrichers.Asks()
	return b.Report, err
}
