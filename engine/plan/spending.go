package plan

import (
	"context"
	"math"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/engine/spend"
	"github.com/racflow/racflow/sdk"
)

// Spending is what limits on what voters take would come to, for all items of the input.
type Spending struct {
	Limit spend.Limit
	Rows  []Spent // by amount, ascending
	// Labelled is how many items of the dry run have a label, and Right how many of these the
	// free voters answer with it. Confident says that the election estimates how likely its
	// answers are right.
	Labelled, Right int
	Confident       bool

	spender *spend.Spender
	wrong   map[int]bool
}

// Spent is one amount.
type Spent struct {
	Amount   float64 // infinite: there is no limit
	Accuracy float64 // at most: if every item that is sent is answered rightly then; of items with labels
	spend.Preview
}

// spending begins to find out what a limit comes to.
func (p *Plan) spending(ctx context.Context, o Options) (*Spending, error) {
	forecast, err := o.Spending(ctx, o.Spend)
	if err != nil {
		return nil, err
	}
	return &Spending{
		Limit: o.Spend, wrong: map[int]bool{},
		spender: spend.New(spend.Options{Limit: o.Spend, Forecast: forecast, Cost: p.Pipeline.Cost}),
	}, nil
}

// ask notes what an item takes, and lets the stand-in see it.
func (s *Spending) ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	s.spender.Ask(voter, line, item)
	return true
}

// nothing keeps no results.
type nothing struct{}

func (nothing) Answered(source.Row) (outcome.Result, bool) { return outcome.Result{}, false }
func (nothing) Keep([]outcome.Result) error                { return nil }

// add counts an item of the dry run.
func (s *Spending) add(r outcome.Result) {
	s.Confident = s.Confident || r.Confidence > 0
	if r.Failure != nil || r.Expected == "" {
		return
	}
	s.Labelled++
	if r.Answer == r.Expected {
		s.Right++
	} else {
		s.wrong[r.Line] = true
	}
}

// sum finds what nothing, the limit, parts and multiples of it, and no limit come to, where
// some of all items made the dry run.
func (s *Spending) sum(tried, items int) {
	limit, share := s.Limit.Amount(), float64(tried)/float64(max(items, 1))
	scale := func(n int) int { return int(float64(n)/share + .5) }
	all := s.spender.Preview(math.Inf(1), s.wrong)
	half := limit / 2
	if s.Limit.Calls != nil {
		half = math.Floor(half)
	}
	for _, amount := range []float64{0, half, limit, 2 * limit, math.Inf(1)} {
		if len(s.Rows) > 0 && amount == s.Rows[len(s.Rows)-1].Amount {
			continue
		}
		found := s.spender.Preview(amount*share, s.wrong)
		if found.Items == all.Items && amount > limit && !math.IsInf(amount, 1) {
			continue // no more than without a limit
		}
		row := Spent{Amount: amount, Preview: found}
		if s.Labelled > 0 {
			row.Accuracy = float64(s.Right+found.Errors) / float64(s.Labelled)
		}
		row.Items, row.Calls, row.Errors = scale(found.Items), scale(found.Calls), scale(found.Errors)
		row.Cost, row.Doubt = found.Cost/share, found.Doubt/share
		s.Rows = append(s.Rows, row)
	}
}
