package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/sdk"
)

// work does a stage's work on some records and writes to their outputs. It
// returns sdk.RowErrors where single rows failed.
type work func(ctx context.Context, records []*record) error

// maxPrototypes bounds how many centroids a voter gets to see per item: the
// softmax over the rest is far below any weight that decides.
const maxPrototypes = 256

// workOf makes the work of a stage from the process that does it.
func (r *Run) workOf(s *stage, process any) (work, error) {
	switch s.Kind {
	case "":
		return r.retrieveWork(s), nil
	case sdk.KindRerank:
		if p, ok := process.(sdk.Reranker); ok {
			return stageWork(s, process, p.Rerank, s.rerank), nil
		}
	case sdk.KindPrompt:
		if p, ok := process.(sdk.Prompter); ok {
			return stageWork(s, process, p.Prompt, func(rec *record, v []sdk.Prompt) {
				s.whole.share(v)
				rec.outputs[s.index].prompts = v
			}), nil
		}
	case sdk.KindSample:
		if p, ok := process.(sdk.Sampler); ok {
			return stageWork(s, process, p.Sample, func(rec *record, v []sdk.Sample) {
				for i := range v {
					v[i].Voter = s.Name
					for j := range v[i].Answers { // whatever the plugin says of that
						v[i].Answers[j].Accepted = v[i].Answers[j].Reason == ""
					}
				}
				// After those of earlier resamples, which stay.
				rec.outputs[s.index].samples = append(rec.outputs[s.index].samples, v...)
			}), nil
		}
	case sdk.KindElect:
		if p, ok := process.(sdk.Elector); ok {
			return stageWork(s, process, p.Elect, r.decided), nil
		}
	}
	return nil, fmt.Errorf("%s: %q does not do the work of its kind", s, s.Use)
}

// stageWork sends records to a plugin stage and takes over what comes back.
func stageWork[T any](s *stage, process any, call func(context.Context, sdk.Batch) ([]T, error), set func(*record, T)) work {
	var random sdk.Draw
	if d, ok := process.(sdk.Drawer); ok && s.Info.Reads.Has(sdk.ColumnRandom) {
		random = d.Random()
	}
	return func(ctx context.Context, records []*record) error {
		b := sdk.Batch{Items: make([]sdk.Item, len(records))}
		for i, rec := range records {
			b.Items[i] = s.item(rec)
		}
		if s.knowledge != nil && s.Info.Reads.Has(sdk.ColumnLabels) {
			b.Labels = s.knowledge.Labels
		}
		if s.knowledge != nil && random.Count > 0 {
			draws, err := s.knowledge.Random(ctx, ids(records), random)
			if err != nil {
				return err
			}
			for i := range draws {
				b.Items[i].Random = draws[i]
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

func ids(records []*record) []string {
	all := make([]string, len(records))
	for i, rec := range records {
		all[i] = rec.id
	}
	return all
}

// retrieveWork searches the knowledge, and the label centroids where a stage
// reads them.
func (r *Run) retrieveWork(s *stage) work {
	ranking := s.Retrieve.Ranking
	prototypes := false
	for _, reader := range r.stages {
		if reader != nil && (reader.index == s.index || reader.in.retrieve == s.index) {
			prototypes = prototypes || reader.Info.Reads.Has(sdk.ColumnPrototypes)
			ranking.Texts = ranking.Texts || reader.Info.Reads.Has(sdk.ColumnCandidateTexts) || reader.rulesRead("candidate_texts")
		}
	}
	if s.whole != nil {
		return s.whole.give(s.index)
	}
	ranking.Texts = ranking.Texts || r.elect < 0 || r.lists // the candidates are the answer, or looked at
	return func(ctx context.Context, records []*record) error {
		ranking := ranking
		ranking.Texts = ranking.Texts || slices.ContainsFunc(records, func(rec *record) bool { return rec.texts })
		queries, texts := make([]sdk.Query, len(records)), make([]string, len(records))
		for i, rec := range records {
			texts[i] = rec.row.Text
			queries[i] = sdk.Query{Text: rec.row.Text, Filter: rec.outputs[s.index].filter}
		}
		candidates, vectors, err := s.knowledge.Retrieve(ctx, ranking, queries)
		failed := sdk.RowErrors{}
		if err := knowledge.TakeRows(failed, err); err != nil {
			return err
		}
		var nearest [][]sdk.Candidate
		if prototypes {
			if vectors == nil && !s.rescue { // a fallback works without what may have failed
				vectors, err = s.knowledge.Embed(ctx, texts)
				if err := knowledge.TakeRows(failed, err); err != nil {
					return err
				}
			}
			if vectors != nil {
				nearest, err = s.knowledge.Prototypes(ctx, vectors, maxPrototypes)
				if err := knowledge.TakeRows(failed, err); err != nil {
					return err
				}
			}
		}
		for i, rec := range records {
			out := &rec.outputs[s.index]
			out.candidates = candidates[i]
			if vectors != nil {
				out.vector = vectors[i]
			}
			if nearest != nil {
				out.prototypes = nearest[i]
			}
		}
		if len(failed) > 0 {
			return failed
		}
		return nil
	}
}
