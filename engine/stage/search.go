package stage

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/sdk"
)

// maxPrototypes bounds how many centroids a voter sees per item: the softmax over the
// rest is far below any weight that decides.
const maxPrototypes = 256

// searcher returns the method of a retrieve stage: it searches the knowledge, and the
// label centroids where a stage reads them, and embeds items where one reads vectors.
func (s *stage) searcher() method {
	if s.whole != nil {
		return s.whole.give(s.index, s.graph.options.Holdout.Of(s.knowledge))
	}
	held := s.graph.options.Holdout
	ranking, embedded, prototypes := s.Retrieve.Ranking, false, false
	for _, reader := range s.graph.stages {
		if reader != nil && (reader.index == s.index || reader.in.retrieve == s.index) {
			prototypes = prototypes || reader.Info.Reads.Has(sdk.ColumnPrototypes)
			embedded = embedded || prototypes || reader.Info.Reads.Has(sdk.ColumnVector)
			ranking.Texts = ranking.Texts || reader.Info.Reads.Has(sdk.ColumnCandidateTexts) || reader.rulesRead("candidate_texts")
		}
	}
	s.shown = ranking.Texts || s.graph.elect < 0
	// Where there is no election the candidates are the answer; lists are looked at.
	ranking.Texts = ranking.Texts || s.graph.elect < 0 && held == nil || s.graph.options.Lists
	return func(ctx context.Context, records []*Record) error {
		ranking := ranking
		ranking.Texts = ranking.Texts || slices.ContainsFunc(records, func(rec *Record) bool { return rec.texts })
		queries := make([]sdk.Query, len(records))
		for i, rec := range records {
			queries[i] = sdk.Query{Text: rec.Row.Text, Filter: rec.outputs[s.index].filter}
			if held.Of(s.knowledge) {
				queries[i].Filter = held.Except(rec.id, queries[i].Filter)
			}
		}
		candidates, vectors, err := s.knowledge.Retrieve(ctx, ranking, queries)
		failed := sdk.RowErrors{}
		if err := knowledge.TakeRows(failed, err); err != nil {
			return err
		}
		var nearest [][]sdk.Candidate
		if embedded && vectors == nil && !s.rescue { // a fallback works without what may have failed
			texts := make([]string, len(records))
			for i, rec := range records {
				texts[i] = rec.Row.Text
			}
			vectors, err = s.knowledge.Embed(ctx, texts)
			if err := knowledge.TakeRows(failed, err); err != nil {
				return err
			}
		}
		if prototypes && vectors != nil {
			nearest, err = s.knowledge.Prototypes(ctx, vectors, maxPrototypes)
			if err := knowledge.TakeRows(failed, err); err != nil {
				return err
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
			if held.Of(s.knowledge) && out.prototypes != nil {
				out.prototypes = held.Prototypes(rec.id, rec.Row.Label, out.vector, out.prototypes)
			}
		}
		if len(failed) > 0 {
			return failed
		}
		return nil
	}
}

// rulesRead reports whether one of the stage's rules reads a name.
func (s *stage) rulesRead(name string) bool {
	for _, f := range s.Fallbacks {
		if f.When.Reads(name) {
			return true
		}
	}
	return s.When.Reads(name) || s.Keep.Reads(name) || s.Accept.Reads(name) || s.Flag.Reads(name)
}
