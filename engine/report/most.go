package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// asked are the voters that a forecast was made of.
func (p Plan) asked() []*pipeline.Stage {
	return slices.DeleteFunc(slices.Clone(p.Pipeline.Stages), func(s *pipeline.Stage) bool {
		_, ok := p.Forecast.Voters[s.Name]
		return !ok || s.Block != "sample"
	})
}

// scale is a number of all items by that of those that were tried.
func (f *Forecast) scale(n, items int) int {
	return int(float64(n)*float64(items)/float64(max(f.Tried, 1)) + .5)
}

func (f *Forecast) scaled(u sdk.Usage, items int) sdk.Usage {
	return sdk.Usage{InputTokens: uint64(f.scale(int(u.InputTokens), items)), OutputTokens: uint64(f.scale(int(u.OutputTokens), items))}
}

// bound is what a run takes at most.
type bound struct {
	tokens uint64
	cost   float64
	known  bool
}

// writeMost shows what each voter takes at most, or why nobody knows.
func (p Plan) writeMost(w io.Writer) bound {
	all := bound{known: true}
	fmt.Fprintf(w, "\nAT MOST\tTOKENS IN\tTOKENS OUT\tCOST\n")
	for _, s := range p.asked() {
		v := p.Forecast.Voters[s.Name]
		if v.Unknown != "" {
			all.known = false
			fmt.Fprintf(w, "sample.%s\tnot known: %s\n", s.Name, v.Unknown)
			continue
		}
		cost := "no price given"
		if s.Price != nil {
			price := *s.Price
			price.Input = max(price.Input, price.Cached)
			all.cost += price.Of(v.Most)
			cost = money(price.Of(v.Most))
		}
		all.tokens += v.Most.InputTokens + v.Most.OutputTokens
		fmt.Fprintf(w, "sample.%s\t%d\t%d\t%s\n", s.Name, v.Most.InputTokens, v.Most.OutputTokens, cost)
	}
	return all
}

// writeBudget compares what calls come to with what a run may spend.
func (p Plan) writeBudget(w io.Writer, estimate float64, most bound) {
	b := p.Pipeline.Budget
	switch {
	case b.Cost > 0 && estimate > b.Cost:
		fmt.Fprintf(w, "The estimate is more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Cost > 0 && most.known && most.cost > b.Cost:
		fmt.Fprintf(w, "It may come to more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Tokens > 0 && most.known && most.tokens > uint64(b.Tokens):
		fmt.Fprintf(w, "It may come to more than max_tokens = %d, at which a run stops.\n", b.Tokens)
	}
	if text := budget(b); text != "" && !most.known {
		fmt.Fprintf(w, "Where a call has no bound, a run may exceed %s by what the calls in flight take.\n", text)
	}
}
