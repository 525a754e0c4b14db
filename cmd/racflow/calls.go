package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/calls"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/sdk"
)

// callFlags are the flags of verbs whose stages call services. What a verb runs
// one after the other shares limits and a budget: they are kept here.
type callFlags struct {
	offline, refresh bool
	budget           pipeline.Budget

	mu      sync.Mutex
	control *calls.Control // nil: no stage has called a service yet
}

func (f *callFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.offline, "offline", false, "answer from the cache alone: call no model")
	c.Flags().BoolVar(&f.refresh, "refresh", false, "ask models again for what the cache holds, and replace it")
	c.Flags().Var((*money)(&f.budget.Cost), "max-cost", "stop before calls cost more than `MONEY`, in place of the pipeline's max_cost; each stage that calls needs a price, and calls of which nobody knows what they take at most may go over it")
	c.Flags().Var((*tokens)(&f.budget.Tokens), "max-tokens", "stop before calls take more than `N` tokens, in place of the pipeline's max_tokens; the same may go over it")
	c.MarkFlagsMutuallyExclusive("offline", "refresh")
}

// money and tokens are the values of flags that set a bound. A bound of 0 is
// none, so whoever writes 0 is told, and does not spend without one.
type (
	money  float64
	tokens int64
)

var errNoBound = errors.New("it must be more than 0; leave it out to set no bound")

func (m *money) Type() string   { return "float" }
func (m *money) String() string { return strconv.FormatFloat(float64(*m), 'g', -1, 64) }

func (m *money) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return errNoBound
	}
	*m = money(v)
	return nil
}

func (t *tokens) Type() string   { return "int" }
func (t *tokens) String() string { return strconv.FormatInt(int64(*t), 10) }

func (t *tokens) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v <= 0 {
		return fmt.Errorf("%w; it is a whole number", errNoBound)
	}
	*t = tokens(v)
	return nil
}

// check refuses a bound on what is spent where nobody knows what that is.
func (f *callFlags) check(p *pipeline.Pipeline) error {
	if without := p.Unpriced(); f.budget.Cost > 0 && len(without) > 0 {
		return fmt.Errorf("%s has no price, so --max-cost cannot bound what it spends: %s", without[0], pipeline.PriceAdvice)
	}
	return nil
}

// of returns what all calls share; before the first call there is nothing.
func (f *callFlags) of(s *session) (*calls.Control, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.control != nil {
		return f.control, nil
	}
	kept, err := cache.Open(filepath.Join(s.state, cacheDir), newLog())
	if err != nil {
		return nil, err
	}
	o := calls.Options{Cache: kept, Budget: f.budget, Log: newLog(), Waiting: func(w calls.Wait) {
		s.progress.Clear()
		fmt.Fprintln(os.Stderr, report.Legible(w.String()))
	}}
	switch {
	case f.offline:
		o.Mode = calls.Offline
	case f.refresh:
		o.Mode = calls.Refresh
	}
	if s.pipeline != nil {
		if o.Budget.Cost == 0 {
			o.Budget.Cost = s.pipeline.Budget.Cost
		}
		if o.Budget.Tokens == 0 {
			o.Budget.Tokens = s.pipeline.Budget.Tokens
		}
	}
	f.control = calls.New(s.ctx, o)
	return f.control, nil
}

// sharing is what a session has of what calls share.
type sharing struct {
	mu      sync.Mutex
	control *calls.Control // nil: no stage calls a service
	before  calls.Snapshot // what had been called when the session began to
}

// share returns what a stage that calls services shares with the others; nil
// for those that do not. A store on a server is no such service.
func (s *session) share(stage *pipeline.Stage, block string) (sdk.Host, error) {
	if !stage.Info.Network || stage.Kind == sdk.KindStore {
		return nil, nil
	}
	control, err := s.flags.calls.of(s)
	if err != nil {
		return nil, err
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if s.calls.control == nil {
		s.calls.control, s.calls.before = control, control.Snapshot()
	}
	return control.Stage(calls.Stage{
		Name: stage.Block + "." + block, Kind: stage.Kind, Use: stage.Use, Limit: stage.Limit, Price: stage.Price,
		// An embedder is not: a search without its vectors may be what stands in.
		Sole: stage.Kind != sdk.KindEmbed && len(stage.Fallbacks) == 0 && stage.OnError == pipeline.FailItem,
	}), nil
}
