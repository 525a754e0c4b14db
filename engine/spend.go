package engine

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/progress"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/sdk"
)

// checkSpend refuses a limit on what voters may spend where there is nothing to spend, or
// nobody knows what that is.
func checkSpend(l spend.Limit, p *pipeline.Pipeline) error {
	if !l.IsSet() {
		return nil
	}
	if err := spend.Check(p); err != nil {
		return optionError("Spend", "%[1]s: %[2]v", err)
	}
	if l.Money == nil {
		return nil
	}
	for _, s := range p.Unpriced() {
		if strings.HasPrefix(s, "sample.") {
			return optionError("Spend.Money", "%[2]s has no price, so %[1]s cannot bound what it spends: %[3]s", s, pipeline.PriceAdvice)
		}
	}
	return nil
}

// newSpender makes what decides about the voters that call services; nil: they are always
// asked.
func (p *Pipeline) newSpender(ctx context.Context) (*spend.Spender, error) {
	limit := p.workspace.options.Spend
	if !limit.IsSet() {
		limit = p.spendable
	}
	if !limit.IsSet() {
		return nil, nil
	}
	forecast, err := p.spendForecast(ctx, limit)
	if err != nil {
		return nil, err
	}
	return spend.New(spend.Options{Limit: limit, Forecast: forecast, Cost: p.chosen.Cost}), nil
}

// spendForecast says what asking a voter about an item takes. What is expected, and so the
// order of the items, goes by the file alone, so that runs repeat. What is taken at
// most, by which a limit of money is kept, goes by what is known of the models where the file
// does not say it.
func (p *Pipeline) spendForecast(ctx context.Context, l spend.Limit) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error) {
	plain, err := estimate.Forecasts(ctx, p.chosen, p.voterForecaster(knowing{}))
	if err != nil || l.Money == nil {
		return plain, err
	}
	known, err := estimate.Forecasts(ctx, p.chosen, p.voterForecaster(knowing{models: true}))
	if err != nil {
		return nil, err
	}
	return func(s *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) {
		f, err := plain(s, item)
		if err != nil || f.Unknown == "" {
			return f, err
		}
		most, err := known(s, item)
		f.Most, f.Unknown = most.Most, most.Unknown
		return f, err
	}, nil
}

// Counting is the journal of items that come one after the other and are not kept; nil:
// there is none.
func (p *Pipeline) Counting() run.Journal {
	if p.spender == nil {
		return nil
	}
	return p.spender.Counting()
}

// passes takes the input through the pipeline twice: for the answers of the free voters,
// and for those that others are paid for. sink gets all results after that.
func (p *Pipeline) passes(ctx context.Context, r *run.Run, book *journal.Journal, sink func([]outcome.Result) error) (outcome.Totals, error) {
	s := p.spender
	book.Index()
	totals, err := p.pass(ctx, r, s.Survey(book), nil, "pass 1 of 2, answering without paid voters")
	if err != nil {
		return totals, err
	}
	first := totals
	for lines := s.Round(); len(lines) > 0; lines = s.Round() {
		totals, err := p.pass(ctx, r, s.Asking(book), lines, "pass 2 of 2, asking paid voters")
		first.Elapsed += totals.Elapsed
		if err != nil && (ctx.Err() != nil || sdk.CodeOf(err) != sdk.CodeStopped) {
			return first, err
		}
		if gone := p.gone(r); gone != nil {
			s.Abandon(gone)
			break
		}
	}
	rows, err := p.Rows()
	if err != nil {
		return first, err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	totals, err = r.Kept(ctx, rows.Next, func(row source.Row) (outcome.Result, *outcome.Failure) { return s.Result(book, row), nil }, sink)
	totals.Elapsed += first.Elapsed
	totals.Earlier = totals.Items - totals.Failed - s.Fresh()
	return totals, err
}

// pass takes the rows of some lines through the pipeline; nil: all.
func (p *Pipeline) pass(ctx context.Context, r *run.Run, j run.Journal, lines []int, doing string) (outcome.Totals, error) {
	rows, err := p.Rows()
	if err != nil {
		return outcome.Totals{}, err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	next, step := rows.Next, func() progress.Step { return rows.step(doing) }
	if lines != nil {
		total := int64(len(lines))
		step = func() progress.Step { return progress.Step{Doing: doing, Total: total} }
		next = func() (source.Row, error) {
			for len(lines) > 0 {
				row, err := rows.Next()
				if err != nil {
					return row, err
				}
				if row.Line == lines[0] {
					lines = lines[1:]
					return row, nil
				}
			}
			return source.Row{}, io.EOF
		}
	}
	var counted tally
	return r.Items(ctx, next, j, func(batch []outcome.Result) error {
		p.workspace.progress(counted.add(batch, step()))
		return nil
	})
}

// gone are the paid voters that had to stop, if no other is left that could be asked; nil:
// one is.
func (p *Pipeline) gone(r *run.Run) []*outcome.Failure {
	halted := r.Graph().Halted()
	if len(halted) == 0 {
		return nil
	}
	if r.Graph().Err() != nil {
		return halted
	}
	for i, s := range p.chosen.Stages {
		name := s.Block + "." + s.Name
		if spend.Paid(s) && p.chosen.Used(i) && !slices.ContainsFunc(halted, func(f *outcome.Failure) bool { return f.Stage == name }) {
			return nil
		}
	}
	return halted
}
