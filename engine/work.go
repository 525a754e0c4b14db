package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/again"
	"github.com/racflow/racflow/engine/dropped"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/sdk"
)

// Outcome is what came of an input, also where the run ended early.
type Outcome struct {
	outcome.Totals
	Run        string      // the ID of its journal; empty: it cannot be resumed
	Labels     []string    // of the knowledge
	Evaluation eval.Report // of the items with an expected label
	Invalid    int         // rows of the knowledge that were left out, and passages without their enrichment
	Err        error       // why the run ended early; nil: it did not
	// Spent is what came of Options.Spend; nil: it was not set.
	Spent *spend.Report
}

// Incomplete reports whether items or rows failed, or lack a voter.
func (o *Outcome) Incomplete() bool {
	return o.Failed > 0 || o.Provisional > 0 || o.Left > 0 || o.Invalid > 0
}

// Work takes the input through the pipeline. write gets batches of results in the
// order of the input, finish (if not nil) the error that ended the run early, or nil,
// and returns the error with which it ends: where that is set, the run is to be
// resumed. Options say whether there is a journal. The outcome is nil where the run
// could not begin.
func (p *Pipeline) Work(ctx context.Context, write func([]outcome.Result) error, finish func(error) error) (*Outcome, error) {
	o, events := p.workspace.options, p.workspace.options.Events
	if o.Remote != nil && o.Spend.IsSet() && !p.rereadable() {
		return nil, optionError("Spend", "%[1]s decides item by item about an input that cannot be read again, which other machines cannot do: keep the items in a file and name it with Options.Input")
	}
	if o.Resume != "" && !p.rereadable() {
		return nil, optionError("Input", "standard input cannot be read again, so no run over it can be resumed: keep the items in a file and name it with %[1]s")
	}
	if o.Spend.IsSet() && p.rereadable() && !o.Journal {
		return nil, optionError("Spend", "%[1]s keeps first answers in a journal: it cannot be used without Options.Journal")
	}
	if o.Again != "" {
		switch {
		case !p.rereadable():
			return nil, optionError("Input", "standard input cannot be read again, so no run has answers to it: keep the items in a file and name it with %[1]s")
		case !o.Journal:
			return nil, optionError("Again", "%[1]s keeps what it takes in a journal: it cannot be used without Options.Journal")
		case o.Spend.IsSet():
			return nil, optionError("Again", "%[1]s takes answers of all voters: it cannot be used together with Options.Spend")
		}
	}
	var last manifest.Manifest
	if o.Resume != "" {
		var err error
		if last, err = p.resume(); err != nil {
			return nil, err
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	p.glance(ctx)
	r, err := p.Start(ctx)
	if err != nil {
		return nil, err
	}
	out, begun := &Outcome{Labels: r.Labels()}, Begun{Pipeline: p.chosen}
	var kept run.Journal
	var book *journal.Journal
	twice := p.spender != nil && p.rereadable()
	if p.spender != nil && !twice {
		kept = p.Counting()
	}
	if o.Journal && p.rereadable() {
		var recalled *again.Journal
		if book, recalled, err = p.journal(ctx, last, &begun); err != nil {
			return nil, err
		}
		kept = book
		if recalled != nil {
			defer func() { _ = recalled.Done() }()
			kept = recalled
		}
		if err := p.workspace.options.Services.keepProfiles(book.Folder()); err != nil {
			return nil, errors.Join(err, book.Close(nil))
		}
		if err := p.workspace.host.Replays().Into(filepath.Join(book.Folder(), "replay")); err != nil {
			p.workspace.log.Warn("requests that stages failed on could not be kept", "error", err)
		}
		out.Run, begun.Run = book.ID(), book.ID()
	}
	if events.Begun != nil {
		events.Begun(begun)
	}
	// Items that lack a service wait for it to the end of the input, and so do results from the first of them on.
	var later unasked
	if book != nil && p.spender == nil && o.Remote == nil && !o.strict && o.Services.Mode != governor.Offline && p.cover(r) {
		book.Index()
		r.OnLater(later.add)
	}
	var counted tally
	counter := eval.NewCounter(out.Labels...).Of(p.chosen)
	sink := func(batch []outcome.Result) error {
		for _, one := range batch {
			counter.Add(one)
			for voter, usage := range one.Usages {
				out.Evaluation.Cost += p.chosen.Cost(voter, usage)
			}
		}
		if events.Answered != nil {
			events.Answered(batch)
		}
		if !twice { // what takes long is over then
			p.workspace.progress(counted.add(batch, rows.step("answering")))
		}
		return write(later.before(batch))
	}
	switch err = p.begin(ctx, book, begun.Resumed, twice, r.Labels()); {
	case err != nil:
	case twice:
		out.Totals, err = p.passes(ctx, r, book, sink)
	default:
		out.Totals, err = r.Items(ctx, rows.Next, kept, sink)
	}
	switch {
	case err != nil:
	case len(later.lines) > 0:
		counter = eval.NewCounter(out.Labels...).Of(p.chosen)
		out.Totals, err = p.askLater(ctx, r, book, &later, out.Totals, func(batch []outcome.Result) error {
			for _, one := range batch {
				counter.Add(one)
			}
			return write(later.after(batch))
		})
	case o.strict && out.Left > 0:
		m := out.Missing[0]
		err = &sdk.Error{Code: sdk.CodeStopped, Err: fmt.Errorf("%d of %d items have no answer of %s: %w", out.Left, out.Items+out.Left, m.Stage, m.First)}
	}
	if p.spender != nil {
		spent := p.spender.Report()
		out.Spent, out.Evaluation.Cost = &spent, spent.Cost
	}
	if finish != nil {
		err = finish(err)
	}
	if book != nil {
		why := err
		if errors.Is(err, context.Canceled) {
			why = errors.New("interrupted")
		}
		if closed := book.Close(journal.NewTotals(out.Totals, why)); closed != nil {
			err = errors.Join(err, fmt.Errorf("journal of the run: %w", closed))
		}
	}
	if o.Remote != nil {
		err = errors.Join(err, o.Remote.End(ctx, err))
	}
	cost := out.Evaluation.Cost
	for _, note := range rows.Notes() {
		p.advise("%s", note)
	}
	out.Evaluation = counter.Report(out.Totals)
	out.Evaluation.Cost = cost
	out.Evaluation.Dropped = dropped.Of(out.Totals, p.chosen, out.Labels)
	p.asked(&out.Evaluation, out.Totals)
	for _, id := range r.Graph().Identities() {
		if strings.HasPrefix(id.Stage, "elect.") {
			out.Evaluation.Weigh(p.chosen.WeightsOf(id.Resolved))
		}
	}
	out.Invalid, out.Err = p.Invalid(), err
	if events.Ended != nil {
		events.Ended(out)
	}
	return out, err
}

// asked says which voters are asked over the network, and counts their items.
func (p *Pipeline) asked(r *eval.Report, t outcome.Totals) {
	for _, s := range p.chosen.Stages {
		if s.Block != "sample" || !s.Info.Network {
			continue
		}
		for i := range r.Voters {
			r.Voters[i].Network = r.Voters[i].Network || r.Voters[i].Name == s.Name
		}
		for _, worked := range t.Stages {
			if worked.Stage == "sample."+s.Name {
				r.Asked += worked.Rows
			}
		}
	}
}

// look calls each with the rows of a rereadable input, until it returns false.
func (p *Pipeline) look(each func(source.Row) bool) error {
	rows, err := p.Rows()
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	for {
		row, err := rows.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !each(row):
			return nil
		}
	}
}
