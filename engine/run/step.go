package run

import (
	"context"
	"slices"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

func (r *record) fail(s *stage, err error) {
	r.outputs[s.index].failure = &Failure{Stage: s.String(), Err: err}
}

// step takes the records of a batch through one stage: when, the call, keep or
// accept, fallback, on_error.
func (s *stage) step(ctx context.Context, records []*record) {
	if s.Kind == sdk.KindRerank {
		defer s.passOn(records)
		if s.whole != nil {
			return
		}
	}
	if s.idle() {
		return
	}
	records = s.wanted(ctx, records)
	if len(records) == 0 {
		return
	}
	if s.Block == "elect" {
		// The election's own accept rule narrows what counts further.
		for _, rec := range records {
			if err := s.accept(ctx, rec, rec.samples(s.in.voters)); err != nil {
				rec.fail(s, err)
			}
		}
		records = slices.DeleteFunc(records, func(rec *record) bool { return rec.outputs[s.index].failure != nil })
	}
	s.attempt(ctx, records)
	s.fallBack(ctx, records)
	for _, rec := range records {
		out := &rec.outputs[s.index]
		switch f := out.failure; {
		case f.stops():
			*out = output{missing: f}
		case f != nil && s.OnError == pipeline.SkipItem:
			*out = output{skipped: f}
		}
	}
}

// attempt calls the stage and applies what follows the call. Items none of
// whose answers is accepted are asked again, as often as the stage may.
func (s *stage) attempt(ctx context.Context, records []*record) {
	if s.stopped.Load() {
		for _, rec := range records {
			rec.fail(s, s.ending.err())
		}
		return
	}
	if s.Retrieve != nil {
		records = s.bind(ctx, records)
	}
	for sampling := 0; len(records) > 0; sampling++ {
		var again []*record
		for i, err := range s.call(ctx, records) {
			rec := records[i]
			if err == nil {
				err = s.settle(ctx, rec)
			}
			if err != nil {
				rec.fail(s, err)
			} else if sampling < s.Resamples && rec.rejected(s.index) {
				again = append(again, rec)
			}
		}
		records = again
	}
}

// rejected reports whether a voter gave samples and none of their answers is
// accepted. One that gave none abstains, and would do so again.
func (r *record) rejected(stage int) bool {
	samples := r.outputs[stage].samples
	return len(samples) > 0 && !slices.ContainsFunc(samples, func(s sdk.Sample) bool {
		return slices.ContainsFunc(s.Answers, func(a sdk.Answer) bool { return a.Accepted })
	})
}

// settle applies the rules that look at what a stage wrote.
func (s *stage) settle(ctx context.Context, rec *record) error {
	switch s.Block {
	case "retrieve", "rerank":
		return s.keep(ctx, rec)
	case "sample":
		return s.accept(ctx, rec, rec.outputs[s.index].samples)
	case "elect":
		return s.flag(ctx, rec)
	}
	return nil
}

// fallBack lets the first fallback whose rule holds take over an item that
// failed or was left without candidates. None takes over one that the stage has
// stopped for: nobody would ask the stage about it again.
func (s *stage) fallBack(ctx context.Context, records []*record) {
	if len(s.fallbacks) == 0 {
		return
	}
	taken := make([][]*record, len(s.fallbacks))
	for _, rec := range records {
		out := &rec.outputs[s.index]
		if out.failure.stops() {
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
				taken[i] = append(taken[i], rec)
				break
			}
		}
	}
	for i, f := range s.fallbacks {
		for _, rec := range taken[i] {
			rec.outputs[s.index] = output{}
		}
		f.attempt(ctx, taken[i])
	}
}
