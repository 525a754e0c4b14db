package knowledge

import (
	"context"

	"github.com/racflow/racflow/engine/pipeline"
)

// Texts calls f with every text that the knowledge would embed if its store were
// empty, but for what services would add. Of the report only the source's share is
// filled in, and what enrichers would be asked.
func Texts(ctx context.Context, block *pipeline.Knowledge, stages Stages, f func(text string)) (Report, error) {
	var err error
	k := &Knowledge{block: block, Report: Report{Name: block.Name, Embedder: block.Embed.Use, Store: block.Store.Use}}
	if block.Chunk != nil {
		if k.chunker, err = stages.Chunker(ctx); err != nil {
			return k.Report, err
		}
	}
	if k.enrichers, err = startEnrichers(ctx, block, stages, local); err != nil {
		return k.Report, err
	}
	b := newBuilder(k, stages, Options{}, nil)
	if err := b.read(ctx); err != nil {
		return k.Report, &SourceError{block.Source.Range, err}
	}
	err = b.stream(ctx, b.rows.units, embedBatch, func(m batch) error {
		for _, text := range m.texts() {
			f(text)
		}
		return nil
	})
	b.countDocuments()
	b.countAsks()
	return k.Report, err
}
