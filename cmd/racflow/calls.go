package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/governor"
)

// callFlags are the flags of verbs whose stages call services. What a verb runs
// one after the other shares limits and a budget: they are kept here.
type callFlags struct {
	offline, refresh bool
	services         engine.Services
}

// shared is what all calls of the verb share.
func (f *callFlags) shared() *engine.Services {
	switch {
	case f.offline:
		f.services.Mode = governor.Offline
	case f.refresh:
		f.services.Mode = governor.Refresh
	}
	return &f.services
}

func (f *callFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.offline, "offline", false, "answer from the cache alone: call no model")
	c.Flags().BoolVar(&f.refresh, "refresh", false, "ask models again for what the cache holds, and replace it")
	c.Flags().Var((*money)(&f.services.Budget.Cost), "max-cost", "stop before calls cost more than `MONEY`, in place of the pipeline's max_cost; each stage that calls needs a price, and calls of which nobody knows what they take at most may go over it")
	c.Flags().Var((*tokens)(&f.services.Budget.Tokens), "max-tokens", "stop before calls take more than `N` tokens, in place of the pipeline's max_tokens; the same may go over it")
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
