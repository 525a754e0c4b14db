package stage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Run takes a batch through all stages.
func (g *Graph) Run(ctx context.Context, records []*Record) {
	var fresh, searched []*Record
	for _, rec := range records {
		if rec.searched {
			searched = append(searched, rec)
		} else {
			fresh = append(fresh, rec)
		}
	}
	g.run(ctx, fresh, func(int) bool { return true })
	if len(searched) > 0 {
		g.run(ctx, searched, func(i int) bool { return g.stages[i].Retrieve == nil })
	}
}

// run takes records through those stages that are wanted, each as soon as those that
// it needs are done.
func (g *Graph) run(ctx context.Context, records []*Record, wanted func(stage int) bool) {
	var good []*Record
	for _, rec := range records {
		if rec.Row.Err == nil && rec.Earlier == nil && rec.decided == nil {
			good = append(good, rec)
		}
	}
	done := make([]chan struct{}, len(g.stages))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var wg sync.WaitGroup
	for i, s := range g.stages {
		if s == nil || !wanted(i) {
			close(done[i])
			continue
		}
		wg.Go(func() {
			defer close(done[i])
			for _, n := range s.in.needs {
				<-done[n]
			}
			if g.options.Ballots && i == g.elect {
				g.keepBallots(good)
			}
			start := time.Now()
			s.run(ctx, good)
			s.tell(good, time.Since(start))
		})
	}
	wg.Wait()
}

// run takes the records of a batch through one stage, in the order of the package's
// documentation.
func (s *stage) run(ctx context.Context, records []*Record) {
	if s.Kind == sdk.KindRerank {
		defer s.passOn(records)
		if s.whole != nil {
			return
		}
	}
	if s.idle() {
		return
	}
	records = s.when(ctx, records)
	if s.Block == "elect" {
		// The election's own accept rule narrows what counts further.
		for _, rec := range records {
			if err := s.accept(ctx, rec, rec.samples(s.in.voters)); err != nil {
				rec.fail(s, err)
			}
		}
		records = slices.DeleteFunc(records, func(rec *Record) bool { return rec.outputs[s.index].failure != nil })
	}
	s.work(ctx, records)
	s.fallBack(ctx, records)
	for _, rec := range records {
		out := &rec.outputs[s.index]
		switch f := out.failure; {
		case stops(f), s.OnError == pipeline.FailItem && s.unavailable(f):
			*out = output{trace: out.trace, missing: f}
		case f != nil && s.OnError == pipeline.SkipItem:
			*out = output{trace: out.trace, skipped: f}
		case f != nil && s.mayAbstain(f):
			out.failure, out.skipped, out.refused = nil, f, true
		}
	}
}

// work calls the stage and applies the rules that follow the call. Items none of whose
// answers is accepted are asked again, as often as resamples allow. A stage that had
// to stop begins nothing.
func (s *stage) work(ctx context.Context, records []*Record) {
	if s.stopped.Load() {
		for _, rec := range records {
			rec.fail(s, s.ending.err())
		}
		return
	}
	if s.Retrieve != nil {
		records = s.filter(ctx, records)
	}
	if s.Kind == sdk.KindSample {
		defer func(all []*Record) {
			for _, rec := range all {
				rec.forgetTexts(s.index)
			}
		}(records)
	}
	for resampled := 0; ; resampled++ {
		if records = s.allowed(records); len(records) == 0 {
			return
		}
		var again []*Record
		for i, err := range s.call(ctx, records) {
			rec := records[i]
			if err == nil {
				err = s.applyRules(ctx, rec)
			}
			if err != nil {
				rec.fail(s, err)
			} else if resampled < s.Resamples && rec.rejected(s.index) {
				rec.retried(s, "none of its answers was accepted")
				again = append(again, rec)
			}
		}
		records = again
	}
}

// rejected reports whether a voter gave samples and none of their answers is accepted.
// One that gave none abstains, and would do so again.
func (r *Record) rejected(stage int) bool {
	samples := r.outputs[stage].samples
	return len(samples) > 0 && !slices.ContainsFunc(samples, func(s sdk.Sample) bool {
		return slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted })
	})
}

// fallBack lets the first fallback whose rule holds take over an item that failed or
// was left without candidates. None takes over one that the stage had to stop for:
// nobody would ask the stage about it again.
func (s *stage) fallBack(ctx context.Context, records []*Record) {
	taken := make([][]*Record, len(s.fallbacks))
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if stops(out.failure) {
			continue
		}
		for i, f := range s.fallbacks {
			when := s.Fallbacks[i].When
			e := f.env(rec, when)
			if e.Failed = out.failure != nil; e.Failed {
				e.Error = out.failure.Err.Error()
			}
			ok, err := when.Eval(ctx, e)
			if err != nil {
				rec.fail(s, err)
				break
			}
			if ok {
				rec.note(s, outcome.Rule{Rule: outcome.RuleFallback, Name: s.Fallbacks[i].Name, Why: reasonOf(out)})
				taken[i] = append(taken[i], rec)
				break
			}
		}
	}
	for i, f := range s.fallbacks {
		for _, rec := range taken[i] {
			rec.outputs[s.index] = output{trace: rec.outputs[s.index].trace}
		}
		f.work(ctx, taken[i])
	}
}

// reasonOf is what a fallback takes over for.
func reasonOf(out *output) string {
	if out.failure != nil {
		return outcome.Why(out.failure.Err)
	}
	return ""
}
