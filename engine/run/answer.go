package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
)

// answer takes records through all stages.
func (r *Run) answer(ctx context.Context, records []*record) []Result {
	start := time.Now()
	r.through(ctx, records, func(int) bool { return true })
	results := make([]Result, len(records))
	for i, rec := range records {
		results[i] = r.result(rec)
		if rec.earlier == nil {
			results[i].Latency = time.Since(start)
		}
	}
	return results
}

// through takes records through those stages that are wanted, each as soon as those
// that it needs are done.
func (r *Run) through(ctx context.Context, records []*record, wanted func(stage int) bool) {
	var good []*record
	for _, rec := range records {
		if rec.row.Err == nil && rec.earlier == nil {
			good = append(good, rec)
		}
	}
	done := make([]chan struct{}, len(r.stages))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for i, s := range r.stages {
		if s == nil || !wanted(i) {
			close(done[i])
			continue
		}
		wg.Go(func() {
			defer close(done[i])
			for _, n := range s.in.needs {
				<-done[n]
			}
			if r.again && i == r.elect {
				r.keepBallots(good)
			}
			s.step(ctx, good)
		})
	}
	wg.Wait()
}

func (r *Run) result(rec *record) Result {
	result := Result{
		Line: rec.row.Line, ID: rec.id, Text: rec.row.Text, Expected: rec.row.Label, Gold: rec.row.Gold,
		Answer: rec.verdict.Answer, Agreement: rec.verdict.Agreement, Reason: rec.verdict.Reason, Flagged: rec.flagged,
		RetrievalOnly: r.elect < 0, FreeText: r.elect >= 0 && r.retrieve >= 0 && len(r.Labels()) == 0,
	}
	if r.again {
		result.record = rec
	}
	if rec.row.Err != nil {
		result.Failure = &Failure{Err: rec.row.Err}
		return result
	}
	if e := rec.earlier; e != nil {
		result.Answer, result.Agreement, result.Reason, result.Flagged = e.Answer, e.Agreement, e.Reason, e.Flagged
		result.Votes, result.Citations, result.Candidates, result.Usage = e.Votes, e.Citations, e.Candidates, e.Usage
		result.earlier = true
		return result
	}
	for i := range rec.outputs {
		if f := rec.outputs[i].failure; f != nil && result.Failure == nil {
			result.Failure = f
		}
		if f := rec.outputs[i].skipped; f != nil {
			result.Skipped = append(result.Skipped, f)
		}
	}
	if result.Failure == nil {
		result.Missing, result.left = r.without(rec)
	}
	if r.elect >= 0 && result.Failure == nil && result.Answer == "" && result.Reason == "" {
		result.Reason = "no election was held: its when rule does not hold"
	}
	result.Citations = r.citations(rec)
	samples := rec.samples(r.voters)
	result.Votes = votes(samples)
	for _, s := range samples {
		result.Usage.Add(s.Usage)
		if len(s.Answers) > 1 && !slices.Contains(result.spread, s.Voter) {
			result.spread = append(result.spread, s.Voter)
		}
		if s.Usage != (sdk.Usage{}) {
			if result.Usages == nil {
				result.Usages = map[string]sdk.Usage{}
			}
			of := result.Usages[s.Voter]
			of.Add(s.Usage)
			result.Usages[s.Voter] = of
		}
	}
	if r.found >= 0 {
		result.Candidates = rec.outputs[r.found].candidates
	}
	if r.lists {
		result.Lists = r.listsOf(rec)
	}
	return result
}
