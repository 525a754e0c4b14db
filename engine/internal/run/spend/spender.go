package spend

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Asker does a Spender's work where the stages are asked on another machine: it decides
// nothing, but asks the paid voters about an item or not as it is asked to, and says what that takes.
// Its methods may be called by several goroutines at once.
type Asker struct {
	spender *Spender

	mu     sync.Mutex
	asking map[int]bool  // by line of the items under way: the paid voters are asked
	ended  chan struct{} // is closed and made anew when some have ended
}

// NewAsker makes the Asker of a part of a run. Of the options it needs Forecast.
func NewAsker(o Options) *Asker {
	return &Asker{spender: New(o), asking: map[int]bool{}, ended: make(chan struct{})}
}

// Begin says of the items of some lines whether the paid voters are asked about them. Where one is
// under way already, it waits until that has ended: a run that is resumed hands out items again that
// were under way, and what services have answered about them is kept by then.
func (c *Asker) Begin(ctx context.Context, lines []int, ask bool) error {
	for {
		ended, ok := c.begin(lines, ask)
		if ok {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin begins all items or none.
func (c *Asker) begin(lines []int, ask bool) (ended <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(lines, func(line int) bool { _, ok := c.asking[line]; return ok }) {
		return c.ended, false
	}
	for _, line := range lines {
		c.asking[line] = ask
	}
	return nil, true
}

// End returns what the items of some lines took, or would take, by position, and forgets them.
func (c *Asker) End(lines []int) map[int]outcome.Bill {
	bills := map[int]outcome.Bill{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spender.mu.Lock()
	defer c.spender.mu.Unlock()
	for i, line := range lines {
		delete(c.asking, line)
		if b := c.spender.take(line); b != nil {
			bills[i] = *b
		}
	}
	close(c.ended)
	c.ended = make(chan struct{})
	return bills
}

// Ask decides about a voter and the item of a line; see stage.Options.
func (c *Asker) Ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	c.mu.Lock()
	ask := c.asking[line]
	c.mu.Unlock()
	c.spender.note(line, c.spender.forecast(voter, item, !ask))
	return ask
}

// Limit is what a run may spend on voters that call services: one of its fields is set.
// The zero Limit is none.
type Limit struct {
	Calls *int     `json:"calls,omitempty"`
	Money *float64 `json:"money,omitempty"` // by the prices in the file
}

// IsSet reports whether there is a limit.
func (l Limit) IsSet() bool { return l.Calls != nil || l.Money != nil }

// Amount is the limit as a number, of calls or of money.
func (l Limit) Amount() float64 {
	if l.Calls != nil {
		return float64(*l.Calls)
	}
	return *l.Money
}

// likely is what an item probably takes.
func (l Limit) likely(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return b.Cost
}

// most is what an item takes at most, if anybody knows that.
func (l Limit) most(b outcome.Bill) float64 {
	if l.Calls != nil {
		return float64(b.Calls)
	}
	return max(b.Cost, b.Most)
}

// unbounded reports whether nobody knows what an item takes at most.
func (l Limit) unbounded(b outcome.Bill) bool { return l.Calls == nil && b.Unbounded }

// Paid reports whether a stage is a voter that calls a service.
func Paid(s *pipeline.Stage) bool {
	return s.Enabled && s.Kind == sdk.KindSample && s.Info.Network
}

// Check says why there is nothing to spend on in a pipeline, or nobody to answer the items
// that are not asked; nil: neither.
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

// Options are what New needs.
type Options struct {
	Limit Limit
	// Forecast says what it takes to ask a voter about an item. It is not called by several
	// goroutines at once.
	Forecast func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error)
	// Cost is what a voter's tokens cost; see pipeline.Pipeline.Cost.
	Cost func(voter string, u sdk.Usage) float64
}

// phase is what a Spender does at the moment.
type phase uint8

const (
	counting  phase = iota // the paid voters are asked until the limit is reached
	surveying              // none is asked
	asking                 // those of a round are
)

// Spender decides about the items of one run. Its methods may be called by several
// goroutines at once, but for those that begin a pass.
type Spender struct {
	options     Options
	forecasting sync.Mutex

	mu       sync.Mutex
	phase    phase
	bills    map[int]*outcome.Bill // by line: of the items under way, what was forecast or asked
	reserved float64               // while counting: by items under way
	held     map[int]float64       // the same by line
	bids     []bid
	aside    float64     // for items that lack a voter
	next     int         // bids before it have had their turn
	round    map[int]int // positions in bids of the items of this round, by line, until they are done
	missing  map[int][]*outcome.Failure
	failures map[int]*outcome.Failure
	fresh    int // items that this part of the run has answered
	report   Report
}

// Report says what was spent.
type Report struct {
	Limit  Limit
	Wanted int // items that a paid voter could be asked about
	Asked  int // of them: was asked about, with an answer
	Calls  int
	Cost   float64
}

// New makes the Spender of a run.
func New(o Options) *Spender {
	return &Spender{
		options: o, bills: map[int]*outcome.Bill{}, held: map[int]float64{},
		missing: map[int][]*outcome.Failure{}, failures: map[int]*outcome.Failure{}, report: Report{Limit: o.Limit},
	}
}

// Report returns what was spent so far, by earlier parts of the run, too.
func (s *Spender) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// Ask decides about a voter and the item of a line; see stage.Options.
func (s *Spender) Ask(voter *pipeline.Stage, line int, item sdk.Item) bool {
	s.mu.Lock()
	phase := s.phase
	s.mu.Unlock()
	switch {
	case phase == surveying:
		s.note(line, s.forecast(voter, item, true))
		return false
	case phase == counting && item.Drawn == 0 && !s.hold(line, s.forecast(voter, item, true)):
		return false
	}
	s.note(line, s.forecast(voter, item, false))
	return true
}

// forecast is what asking a voter about an item takes: once, or with all resamples.
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
		if err != nil { // asking fails, too
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

// Asks reports whether the paid voters are asked now; else their first pass has not ended.
func (s *Spender) Asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == asking
}

// Note adds to the bill of an item that is under way on another machine (see Asker).
func (s *Spender) Note(line int, b outcome.Bill) { s.note(line, b) }

// note adds to the bill of an item that is under way.
func (s *Spender) note(line int, b outcome.Bill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Calls == 0 { // a voter that asks nobody about it
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

// hold reserves what an item may take, until it is done; false: that is beyond the limit.
func (s *Spender) hold(line int, b outcome.Bill) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.options.Limit.most(b)
	if !s.fits(s.reserved + most) {
		if s.bills[line] == nil {
			s.bills[line] = &outcome.Bill{} // it was wanted
		}
		return false
	}
	s.reserved += most
	s.held[line] += most
	return true
}

// rounding is what sums of money may be off by.
const rounding = 1e-9

// fits reports whether there is room for more. The caller holds mu.
func (s *Spender) fits(more float64) bool {
	return s.spent()+s.aside+more <= s.options.Limit.Amount()*(1+rounding)
}

// spent is in the limit's unit. The caller holds mu.
func (s *Spender) spent() float64 {
	if s.options.Limit.Calls != nil {
		return float64(s.report.Calls)
	}
	return s.report.Cost
}
