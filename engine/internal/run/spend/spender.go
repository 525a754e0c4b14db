package spend

import (
	"errors"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Spender decides which items of a run the paid voters are asked about. Several goroutines may call
// its methods at once, except methods that begin a pass.
type Spender struct {
	options     Options
	forecasting sync.Mutex

	mu       sync.Mutex
	asking   bool                  // second pass: paid voters are asked about the items of a round
	bills    map[int]*outcome.Bill // by line, of the items in work: forecast or actual
	bids     []bid
	aside    float64     // amount set aside for items with a missing voter
	next     int         // index in bids of the next item
	round    map[int]int // positions in bids, by line, of this round's unfinished items
	missing  map[int][]*outcome.Failure
	failures map[int]*outcome.Failure
	fresh    int // items answered in this part of the run
	report   Report
}

// Limit bounds what a run spends on voters that call services. Exactly one field is set; the zero
// Limit means no limit.
type Limit struct {
	Calls *int     `json:"calls,omitempty"`
	Money *float64 `json:"money,omitempty"` // by the prices in the file
}

// IsSet reports whether there is a limit.
func (l Limit) IsSet() bool { return l.Calls != nil || l.Money != nil }

// Amount returns the limit in calls or in money.
func (l Limit) Amount() float64 {
	if l.Calls != nil {
		return float64(*l.Calls)
	}
	return *l.Money
}

// likely returns the likely price of an item, in the limit's unit.
func (l Limit) likely(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return b.Cost
}

// most returns the highest known price of an item, in the limit's unit.
func (l Limit) most(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return max(b.Cost, b.Most)
}

// unbounded reports whether the highest price of an item is unknown.
func (l Limit) unbounded(b outcome.Bill) bool { return l.Calls == nil && b.Unbounded }

// Paid reports whether a stage is a voter that calls a service.
func Paid(s *pipeline.Stage) bool {
	return s.Enabled && s.Kind == sdk.KindSample && s.Info.Network
}

// Check returns an error if a pipeline has no paid voter, or no free voter for the items that are
// not asked about.
func Check(p *pipeline.Pipeline) error {
	paid, free := false, false
	for i, s := range p.Stages {
		if s.Block == "sample" && s.Enabled && p.Used(i) {
			paid, free = paid || Paid(s), free || !Paid(s)
		}
	}
	switch {
	case !paid:
		return errors.New("no voter calls a service, so there is nothing to spend")
	case !free:
		return errors.New("every voter calls a service, so nobody would answer the items that are not sent: add a voter that calls none, such as neighbours, or take fewer items with Options.Limit")
	}
	return nil
}

// Options configures a Spender.
type Options struct {
	Limit Limit
	// Forecast predicts the requests and tokens of asking a voter about an item. It is never called
	// concurrently.
	Forecast func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error)
	// Cost prices a voter's tokens; see pipeline.Pipeline.Cost.
	Cost func(voter string, u sdk.Usage) float64
}

// Report sums up the spending of a run.
type Report struct {
	Limit  Limit
	Wanted int // items that a paid voter could be asked about
	Asked  int // of Wanted: asked about and answered
	Calls  int
	Cost   float64
	// RestCalls and RestCost are the forecast for the items of Wanted that were not asked about; 0:
	// unknown.
	RestCalls int
	RestCost  float64
}

// New makes the Spender of a run.
func New(o Options) *Spender {
	return &Spender{
		options: o, bills: map[int]*outcome.Bill{},
		missing: map[int][]*outcome.Failure{}, failures: map[int]*outcome.Failure{}, report: Report{Limit: o.Limit},
	}
}

// Report returns the spending so far, including earlier parts of the run.
func (s *Spender) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	for _, b := range s.bids {
		if !b.asked {
			r.RestCalls += b.bill.Calls
			r.RestCost += b.bill.Cost
		}
	}
	return r
}

// Count adds spending from before the first item.
func (s *Spender) Count(b outcome.Bill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(b)
}

// Ask decides whether to ask a voter about the item of a line; see stage.Options.
func (s *Spender) Ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	s.mu.Lock()
	asking := s.asking
	s.mu.Unlock()
	s.note(line, s.forecast(voter, item, !asking))
	return asking
}

// forecast returns the bill of asking a voter about an item: once or, with whole, with all
// resamples.
func (s *Spender) forecast(voter *pipeline.Stage, item sdk.Item, whole bool) outcome.Bill {
	s.forecasting.Lock()
	defer s.forecasting.Unlock()
	price, most := pipeline.Price{}, sdk.Usage{}
	if voter.Price != nil {
		price = *voter.CallPrice()
	}
	var b outcome.Bill
	for {
		f, err := s.options.Forecast(voter, item)
		if err != nil { // asking the voter would fail, too
			f = sdk.Forecast{Requests: 1}
		}
		b.Calls += f.Requests
		if item.Drawn == 0 {
			b.Cost = price.Of(f.Likely)
		}
		most.Add(f.Most)
		b.Unbounded = b.Unbounded || f.Unknown != ""
		if item.Drawn += max(voter.N, 1); !whole || item.Drawn > voter.Resamples*max(voter.N, 1) {
			break
		}
	}
	for _, f := range voter.Fallbacks {
		b.Unbounded = b.Unbounded || f.Stage.Info.Network
	}
	if b.Unbounded = b.Unbounded && price != (pipeline.Price{}); !b.Unbounded {
		b.Most = price.AtMost(most)
	}
	return b
}

// note adds to the bill of an item in work.
func (s *Spender) note(line int, b outcome.Bill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Calls == 0 { // the voter calls no service about this item
		return
	}
	of := s.bills[line]
	if of == nil {
		of = &outcome.Bill{}
		s.bills[line] = of
	}
	of.Calls += b.Calls
	of.Cost += b.Cost
	of.Most += b.Most
	of.Unbounded = of.Unbounded || b.Unbounded
}

// rounding is the relative error allowed in sums of money.
const rounding = 1e-9

// fits reports whether the limit has room for more. The caller holds mu.
func (s *Spender) fits(more float64) bool {
	return s.spent()+s.aside+more <= s.options.Limit.Amount()*(1+rounding)
}

// spent returns the amount spent in the limit's unit. The caller holds mu.
func (s *Spender) spent() float64 {
	if s.options.Limit.Calls != nil {
		return float64(s.report.Calls)
	}
	return s.report.Cost
}
