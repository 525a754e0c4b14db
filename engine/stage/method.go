package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/engine/pending"
	"github.com/racflow/racflow/sdk"
)

// method does a stage's work on some records and writes to their outputs. It returns
// sdk.RowErrors where single rows failed.
type method func(ctx context.Context, records []*Record) error

// methodOf returns what a stage's process does.
func (s *stage) methodOf(process any) (method, error) {
	switch s.Kind {
	case "":
		return s.searcher(), nil
	case sdk.KindRerank:
		if p, ok := process.(sdk.Reranker); ok {
			return methodBy(s, process, p.Rerank, s.rerank), nil
		}
	case sdk.KindPrompt:
		if p, ok := process.(sdk.Prompter); ok {
			return methodBy(s, process, p.Prompt, func(rec *Record, v []sdk.Prompt) {
				s.whole.share(v)
				rec.outputs[s.index].prompts = v
			}), nil
		}
	case sdk.KindSample:
		if p, ok := process.(sdk.Sampler); ok {
			sample := p.Sample
			if c, ok := process.(sdk.SampleCollector); ok && s.Info.Pends {
				sample = func(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
					if handle := pending.Handle(ctx); handle != "" {
						return c.CollectSamples(ctx, handle, b)
					}
					return p.Sample(ctx, b)
				}
			}
			return methodBy(s, process, sample, s.sample), nil
		}
	case sdk.KindElect:
		if p, ok := process.(sdk.Elector); ok {
			return methodBy(s, process, p.Elect, s.decide), nil
		}
	}
	return nil, fmt.Errorf("%s: %q does not do the work of its kind", s, s.Use)
}

// methodBy calls a plugin's stage with items and sets what it returns for each.
func methodBy[T any](s *stage, process any, call func(context.Context, sdk.Batch) ([]T, error), set func(*Record, T)) method {
	if d, ok := process.(sdk.Drawer); ok && s.Info.Reads.Has(sdk.ColumnRandom) {
		s.random = d.Random()
	}
	return func(ctx context.Context, records []*Record) error {
		b := sdk.Batch{Items: make([]sdk.Item, len(records))}
		for i, rec := range records {
			b.Items[i] = s.item(rec)
		}
		if s.knowledge != nil && s.Info.Reads.Has(sdk.ColumnLabels) {
			b.Labels = s.knowledge.Labels
		}
		draws, err := s.draw(ctx, records)
		if err != nil {
			return err
		}
		for i := range draws {
			if b.Items[i].Random = draws[i]; s.graph.options.Basis {
				records[i].outputs[s.index].drawn = digestOf(draws[i], true)
			}
		}
		values, err := call(ctx, b)
		var rows sdk.RowErrors
		if err != nil && !errors.As(err, &rows) {
			return err
		}
		if len(values) != len(records) {
			return fmt.Errorf("it returned %d results for %d items", len(values), len(records))
		}
		for i, rec := range records {
			if rows[i] == nil {
				set(rec, values[i])
			}
		}
		return err
	}
}

// draw draws the random examples of records; nil: the stage gets none.
func (s *stage) draw(ctx context.Context, records []*Record) ([][]sdk.Candidate, error) {
	if s.knowledge == nil || s.random.Count == 0 {
		return nil, nil
	}
	ids := make([]string, len(records))
	for i, rec := range records {
		ids[i] = cmp.Or(rec.Row.ID, rec.Row.Text) // a line's number would be another one after a line that is added
	}
	return s.knowledge.Random(ctx, ids, s.random, s.graph.options.Holdout.Of(s.knowledge))
}

// sample adds what a voter returned to the samples that it gave before.
func (s *stage) sample(rec *Record, samples []sdk.Sample) {
	for i := range samples {
		samples[i].Voter = s.Name
		if len(samples[i].Answers) > 1 {
			s.spread.Store(true)
		}
		for j := range samples[i].Answers { // whatever the plugin says of that
			samples[i].Answers[j].Accepted = samples[i].Answers[j].Reason == ""
		}
	}
	out := &rec.outputs[s.index]
	out.samples = append(out.samples, samples...)
}

// rerank sets the best of the candidates above by a reranker's scores. Their dense and
// lexical scores stay.
func (s *stage) rerank(rec *Record, ranked []sdk.Ranked) {
	above := rec.outputs[s.in.found].candidates
	best := make([]sdk.Candidate, min(len(ranked), s.TopK))
	for i := range best {
		best[i] = above[ranked[i].Candidate]
		best[i].Score = ranked[i].Score
	}
	out := &rec.outputs[s.index]
	out.candidates, out.reranked = best, true
}

// passOn hands on the candidates above of those records that the stage did not rerank:
// its when rule does not hold for them, or its failure is skipped. There are as many of
// them as of others, unless they are a knowledge as a whole.
func (s *stage) passOn(records []*Record) {
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if out.reranked || out.failure != nil || out.missing != nil || rec.failure(s.in.needs) != nil {
			continue
		}
		above := rec.outputs[s.in.found].candidates
		n := min(len(above), s.TopK)
		if s.whole != nil {
			n = len(above)
		}
		out.candidates = above[:n:n]
	}
}
