package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/dropped"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/journal/runs"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// Elsewhere is a run that its caller has left (Pipeline.Detach), as others answer it.
type Elsewhere struct {
	Manifest manifest.Manifest // its Cluster says where that is
	Labels   []string          // of the knowledge
	Keep     journal.Keep
	Items    int // of the input
	// Answers are those of all items in the order of the input, with all that results have of the
	// rows, as they come. An error is the last.
	Answers iter.Seq2[run.Answers, error]
	// End is called when the results are written and the journal is closed, as that of a Remote.
	End func(ctx context.Context, err error) error
}

// Attach takes the results of a run that goes on elsewhere: as Work, but no stage is started, and
// neither the file nor the input has to be here. What has been taken of it before is in a journal of
// this workspace, which goes on.
func (w *Workspace) Attach(ctx context.Context, from Elsewhere, write func([]outcome.Result) error, finish func(error) error) (*Outcome, error) {
	book, err := w.attached(from)
	if err != nil {
		return nil, err
	}
	start, out := time.Now(), &Outcome{Labels: from.Labels, Run: book.ID()}
	counter := eval.NewCounter(from.Labels...)
	var counted tally
	var ended error
	cost := 0.0
	for a, e := range from.Answers {
		if err = e; err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
		batch := results(a)
		if err = keepAttached(book, batch, &out.Totals); err != nil {
			break
		}
		for _, one := range batch {
			out.Totals.Add(one)
			counter.Add(one)
			for _, c := range one.Costs {
				cost += c
			}
		}
		for _, why := range a.Left {
			out.Totals.AddLeft(outcome.FailureOf(why))
		}
		worked(&out.Totals, a)
		if ended == nil {
			ended = a.Ended
		}
		if w.options.Events.Answered != nil {
			w.options.Events.Answered(batch)
		}
		w.progress(counted.add(batch, progress.Step{Doing: "answering", Total: int64(from.Items)}))
		if err = write(batch); err != nil {
			break
		}
	}
	if err == nil {
		err = ended
	}
	if got := out.Totals.Items + out.Totals.Left; err == nil && got != from.Items {
		err = fmt.Errorf("%d of the %d items have come back: results of the run were removed from the servers", got, from.Items)
	}
	out.Totals.Elapsed = time.Since(start)
	if finish != nil {
		err = finish(err)
	}
	why := err
	if errors.Is(err, context.Canceled) {
		why = errors.New("interrupted")
	}
	if closed := book.Close(journal.NewTotals(out.Totals, why)); closed != nil {
		err = errors.Join(err, fmt.Errorf("journal of the run: %w", closed))
	}
	ended = err
	if ended == nil && (out.Totals.Left > 0 || out.Totals.Provisional > 0) { // a resumed run asks about them
		ended = errors.New("some items lack an answer, or a voter")
	}
	err = errors.Join(err, from.End(ctx, ended))
	out.Evaluation = counter.Report(out.Totals)
	out.Evaluation.Cost = cost
	out.Evaluation.Dropped = dropped.Of(out.Totals, &pipeline.Pipeline{}, from.Labels)
	askedOver(&out.Evaluation, out.Totals, from.Manifest.Stages)
	if out.Err = err; w.options.Events.Ended != nil {
		w.options.Events.Ended(out)
	}
	return out, err
}

// results are those of answers, without the rows that are left.
func results(a run.Answers) []outcome.Result {
	if len(a.Left) == 0 {
		return a.Results
	}
	var all []outcome.Result
	for i, one := range a.Results {
		if _, left := a.Left[i]; !left {
			all = append(all, one)
		}
	}
	return all
}

// attached is the journal of a run that goes on elsewhere: the one that it has here, or a new one.
func (w *Workspace) attached(from Elsewhere) (*journal.Journal, error) {
	m := from.Manifest
	how := journal.Options{Keep: from.Keep}
	if m.Cluster == nil {
		return nil, errors.New("the manifest of the run does not say where it is")
	}
	if id, ok := w.Runs().Elsewhere(m.Cluster.Run); ok {
		return w.Runs().Resume(id, how)
	}
	book, _, err := w.Runs().Begin(m, how, runs.Retention{})
	return book, err
}

// keepAttached keeps those results that the journal does not have, and counts the others.
func keepAttached(book *journal.Journal, batch []outcome.Result, t *outcome.Totals) error {
	var fresh []outcome.Result
	for _, one := range batch {
		if one.Failure == nil && len(one.Missing) == 0 {
			if _, has := book.Answered(source.Row{Line: one.Line, ID: one.ID}); has {
				t.Earlier++
				continue
			}
		}
		fresh = append(fresh, one)
	}
	return book.Keep(fresh)
}

// worked adds what the stages have done, and which of them had to stop.
func worked(t *outcome.Totals, a run.Answers) {
	for _, f := range a.Halted {
		outcome.Count(&t.Missing, f, 0)
	}
	for _, voter := range a.Distributions {
		if !slices.Contains(t.Distributions, voter) {
			t.Distributions = append(t.Distributions, voter)
		}
	}
	for _, s := range a.Times {
		at := slices.IndexFunc(t.Stages, func(have outcome.StageTime) bool { return have.Stage == s.Stage })
		if at < 0 {
			t.Stages = append(t.Stages, s)
			continue
		}
		t.Stages[at].Rows += s.Rows
		t.Stages[at].Busy += s.Busy
	}
}

// askedOver counts the items of voters that are asked for money, since nothing else says which are asked
// over the network.
func askedOver(r *eval.Report, t outcome.Totals, stages []manifest.Stage) {
	for _, s := range stages {
		name, ok := strings.CutPrefix(s.Stage, "sample.")
		if !ok || s.Price == nil {
			continue
		}
		for i := range r.Voters {
			r.Voters[i].Network = r.Voters[i].Network || r.Voters[i].Name == name
		}
		for _, worked := range t.Stages {
			if worked.Stage == s.Stage {
				r.Asked += worked.Rows
			}
		}
	}
}
