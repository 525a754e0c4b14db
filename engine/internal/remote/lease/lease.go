package lease

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// Room is where the processes that share limits meet. *bus.Run is one.
type Room interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Ask(ctx context.Context, subject string, data []byte) ([]byte, error)
	Serve(subject string, answer func([]byte) []byte) (stop func(), err error)
	Tell(subject string, data []byte) error
	Hear(subject string, hear func([]byte)) (stop func(), err error)
}

// Options configure a Holder or a Keeper.
type Options struct {
	Name   string // of the process, for people
	Log    *slog.Logger
	Limits Limits
	Share  func(*pipeline.Limit) (governor.Admitter, error) // governor.Options.Share of a keeper

	terms *terms // nil: the defaults
}

// terms are the durations that holders and keepers agree on.
type terms struct {
	lease time.Duration // without a report for that long, the calls of a holder stop counting
	fresh time.Duration // how long after a holder's report a call may begin that was admitted by it
	every time.Duration // between the reports of a holder with waiting calls; others report half as often
	claim time.Duration // of the keeper's claim; renewed three times as often
}

func (o Options) lasting() terms {
	if o.terms != nil {
		return *o.terms
	}
	return terms{lease: 10 * time.Second, fresh: 2 * time.Second, every: time.Second, claim: 6 * time.Second}
}

// Amount is money, in the currency of the file's prices, and tokens, input plus output.
type Amount = governor.Amount

// Limits are the limits for the calls of a run on all machines together: all that a keeper has to
// know. The definition of a run contains them as JSON.
type Limits struct {
	Blocks []pipeline.Limit `json:"blocks,omitempty"` // the limit blocks that stages of the run name, each once
	Budget Amount           `json:"budget,omitzero"`  // 0: no limit
	// Spent already counts towards the budget: the cost of building the knowledge, for example.
	Spent Amount `json:"spent,omitzero"`
}

// LimitsOf returns the limits of a pipeline's calls. The pipeline's own budget replaces missing
// values of budget. The caller sets Spent.
func LimitsOf(p *pipeline.Pipeline, budget pipeline.Budget) Limits {
	limits := Limits{Budget: Amount{
		Cost: cmp.Or(budget.Cost, p.Budget.Cost), Tokens: cmp.Or(budget.Tokens, p.Budget.Tokens),
	}}
	seen := map[string]bool{}
	add := func(stages []*pipeline.Stage) {
		for _, s := range stages {
			if l := s.Limit; s.Enabled && l != nil && !seen[l.Name] {
				seen[l.Name] = true
				limits.Blocks = append(limits.Blocks, *l)
			}
		}
	}
	add(p.Stages)
	for _, k := range p.Knowledge() {
		add(k.Stages())
	}
	return limits
}

// LimitOf returns the limits of a room for a limit block that runs share.
func LimitOf(l *pipeline.Limit) Limits {
	b := *l
	b.Name, b.Shared = l.Shared, ""
	return Limits{Blocks: []pipeline.Limit{b}}
}

// limit returns a limit block in the form of a file; nil: the run has no such block.
func (l Limits) limit(name string) *pipeline.Limit {
	for _, b := range l.Blocks {
		if b.Name == name {
			return &b
		}
	}
	return nil
}

// used counts the limits per minute as used in full.
func (l Limits) used() map[string]governor.Recent {
	all := map[string]governor.Recent{}
	for _, b := range l.Blocks {
		all[b.Name] = governor.Recent{Requests: float64(b.Requests), Tokens: float64(b.Tokens)}
	}
	return all
}

// Key is the key in the room's bucket whose value is a Record.
const Key = "keeper"

// Record is the keeper's claim, with what the next keeper must know.
type Record struct {
	ID      string                     `json:"id,omitempty"`   // of the claim, unique; empty: it was given back
	Name    string                     `json:"name,omitempty"` // of the process, for people
	Limits  Limits                     `json:"limits"`
	Ceiling governor.Spending          `json:"ceiling,omitzero"`  // what was spent and reserved is no more, unless a later record says so
	Holders []string                   `json:"holders,omitempty"` // IDs of those who may have admitted calls
	Recent  map[string]governor.Recent `json:"recent,omitempty"`  // if the claim was given back
	At      time.Time                  `json:"at"`                // of the writer's clock
	Why     string                     `json:"why,omitempty"`     // why the budget is used up; empty: it is not
}

// Subjects of the room.
const (
	reports = "lease-"  // reports to a keeper; the ID of its claim follows
	tidings = "leased-" // decisions for a holder; its ID follows
	turns   = "turn"    // there is another keeper
)

// report is a holder's message to the keeper. It names all its calls, so a later one replaces what was lost.
type report struct {
	Holder  string                `json:"holder"` // unique
	Number  uint64                `json:"number"` // grows
	Waiting []uint64              `json:"waiting,omitempty"`
	Sent    []uint64              `json:"sent,omitempty"`
	Ended   map[uint64]sdk.Result `json:"ended,omitempty"`
	Asked   map[uint64]*asked     `json:"asked,omitempty"`   // calls that the keeper may not know yet
	Leaving bool                  `json:"leaving,omitempty"` // it makes no more calls
}

// asked describes a call.
type asked struct {
	Stage    string          `json:"stage"`
	Block    string          `json:"block,omitempty"` // the limit block; empty: the limit of the endpoint
	Price    *pipeline.Price `json:"price,omitempty"`
	Required bool            `json:"required,omitempty"`
	Covered  bool            `json:"covered,omitempty"`
	Call     sdk.Call        `json:"call"`
}

// news is the answer to a report, or comes after it when calls are decided on.
type news struct {
	Keeper    string          `json:"keeper"` // ID of its claim
	Number    uint64          `json:"number"` // of the newest report that the keeper has
	Decided   []decision      `json:"decided,omitempty"`
	Ended     []uint64        `json:"ended,omitempty"`     // calls whose result is counted
	Exhausted string          `json:"exhausted,omitempty"` // why the budget is used up
	Forgotten bool            `json:"forgotten,omitempty"` // the holder was silent for too long: it must describe its calls again
	Waits     []terminal.Wait `json:"waits,omitempty"`
	At        time.Time       `json:"at"` // by the clock that Waits go by
}

// decision says that a call may be sent, or why not.
type decision struct {
	ID      uint64        `json:"id"`
	Code    sdk.Code      `json:"code,omitempty"`
	Refused string        `json:"refused,omitempty"` // empty: it may be sent
	After   time.Duration `json:"after,omitempty"`
}

// decided returns the decision on a call of a holder; err says why it may not be sent.
func (h *holder) decided(id uint64, err error) decision {
	d := decision{ID: id}
	if err != nil {
		d.Code, d.Refused = sdk.CodeOf(err), strings.TrimPrefix(err.Error(), h.id+"/") // in front of the stage's name
		var coded *sdk.Error
		if errors.As(err, &coded) {
			d.After = coded.RetryAfter
		}
	}
	return d
}

func (d decision) err() error {
	if d.Refused == "" {
		return nil
	}
	return &sdk.Error{Code: d.Code, RetryAfter: d.After, Err: errors.New(d.Refused)}
}
