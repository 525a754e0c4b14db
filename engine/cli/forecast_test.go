package cli

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestForecastHolds compares the plan for random configurations with the counts of a server with real
// tokenizers. The run uses no more than "at most", and about as much as expected. The model was
// probed, and sixteen other items came before.
func TestForecastHolds(t *testing.T) {
	leaveTo(t, "command", "it is many runs; package estimate shows it without a process")
	configurations := uint64(200)
	if testing.Short() {
		configurations = 10
	}
	var off []float64
	bounded, near := 0, 0.0
	for seed := range configurations {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := randomWorld(t, seed)
			w.probe()
			w.run("first.tsv")
			said, took := w.plan(), w.run("items.tsv")
			if took.Calls == 0 {
				return
			}
			in, out := said.Likely.InputTokens, said.Likely.OutputTokens
			counted := took.InputTokens + took.OutputTokens
			by := float64(in+out)/float64(counted) - 1
			off = append(off, by)
			if math.Abs(by) > 0.25 {
				t.Errorf("%s: %d requests with %d tokens in and %d out are expected, %+.0f %%; it took %+v", w.about, said.Requests, in, out, 100*by, took)
			}
			if said.Unknown != "" {
				return
			}
			bounded++
			if uint64(said.MostRequests) < uint64(took.Calls) || said.Most.InputTokens < took.InputTokens || said.Most.OutputTokens < took.OutputTokens || said.MostCost < took.Cost {
				t.Errorf("%s: at most %d requests, %+v; it took %+v", w.about, said.MostRequests, said.Most, took)
			}
			near = max(near, float64(took.InputTokens)/float64(said.Most.InputTokens))
		})
	}
	slices.SortFunc(off, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) })
	t.Logf("%d configurations: off by %.0f %% at the median, %.0f %% at the 95th percentile, %.0f %% at most; %d have a bound, of which up to %.0f %% of the tokens in were used",
		len(off), 100*math.Abs(off[len(off)/2]), 100*math.Abs(off[len(off)*95/100]), 100*math.Abs(off[len(off)-1]), bounded, 100*near)
	if bounded < int(configurations)/2 || near < 0.2 {
		t.Errorf("%d configurations have a bound, of which %.2f is used at most: nothing was tested", bounded, near)
	}
}
