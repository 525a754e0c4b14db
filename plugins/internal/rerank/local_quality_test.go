package rerank

import (
	"math"
	"os"
	"testing"

	"github.com/racflow/racflow/plugins/internal/embed"

	"github.com/racflow/racflow/sdk"
)

// everything names the variable that asks for the long comparison, too.
const everything = "RACFLOW_TEST_QUALITY"

// setting is what the stage depends on: its weights, and the overlap from which on texts
// count as copies.
type setting struct{ phrases, fields, copied, diversity float64 }

// settings are those to choose from, the search's own order first.
func settings() (all []setting) {
	weights := []float64{0, .25, .5, .75, 1}
	for _, copies := range [][2]float64{{0, 0}, {.5, .5}, {.5, 1}, {.3, .5}, {.3, 1}, {0, .5}} {
		for _, phrases := range weights {
			for _, fields := range weights {
				all = append(all, setting{phrases, fields, copies[0], copies[1]})
			}
		}
	}
	return all
}

// current is that of the stage.
func current(t testing.TB) setting {
	r := opened(t, "{}")
	return setting{r.Phrases, r.Fields, copied, r.Diversity}
}

// gains are what settings change: by set, question and setting.
type gains map[*set][]map[setting]measures

// gain measures settings on sets with candidates.
func gain(t testing.TB, sets []*set, of []setting) gains {
	r := opened(t, "{}")
	all := gains{}
	for _, s := range sets {
		for i := range s.questions {
			q := &s.questions[i]
			l := read(r.analyzer, &q.item, r.Names)
			without := q.measure(l.order(0, 0, 0, 0))
			by := map[setting]measures{}
			for _, c := range of {
				with := q.measure(l.order(c.phrases, c.fields, c.copied, c.diversity))
				for m := range with {
					with[m] -= without[m]
				}
				by[c] = with
			}
			all[s] = append(all[s], by)
		}
	}
	return all
}

// choose returns the setting with the best mean of the measures over all questions but
// those of a group. Each set counts the same.
func (g gains) choose(sets []*set, except string) (best setting) {
	most := math.Inf(-1)
	for _, c := range settings() {
		total := 0.0
		for _, s := range sets {
			sum, n := 0.0, 0.0
			for i, by := range g[s] {
				if s.questions[i].group != except {
					sum, n = sum+by[c][0]+by[c][1]+by[c][2], n+1
				}
			}
			total += sum / max(1, n)
		}
		if total > most+1e-9 {
			most, best = total, c
		}
	}
	return best
}

// report logs the paired differences of questions, and returns their means and the upper
// ends of their intervals.
func report(t testing.TB, what string, of []measures) (means, highs measures) {
	t.Helper()
	for m, name := range names {
		values := make([]float64, len(of))
		better, worse := 0, 0
		for i := range of {
			values[i] = of[i][m]
			if values[i] > 1e-9 {
				better++
			} else if values[i] < -1e-9 {
				worse++
			}
		}
		mean, low, high := difference(values)
		t.Logf("%s: %s %+.4f [%+.4f, %+.4f], %d of %d questions better, %d worse", what, name, mean, low, high, better, len(of), worse)
		means[m], highs[m] = mean, high
	}
	return means, highs
}

// TestQuality measures the stage on whole sets, with an embedder that is fast and that the
// weights were not chosen with. At least those gains are left on source code that are the
// lower ends of the intervals in TestCrossValidated, and prose loses nothing beyond its
// interval.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("it searches among 737 chunks of code")
	}
	now := current(t)
	for name, c := range map[string]struct {
		set   func(testing.TB) *set
		least measures
	}{
		"codebases": {codebases, measures{-.001, .008, -.004}},
		"manual":    {manual, measures{-1, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.set(t)
			s.retrieve(t, embed.Hashing(), weighted)
			var changes []measures
			for _, by := range gain(t, []*set{s}, []setting{now})[s] {
				changes = append(changes, by[now])
			}
			means, highs := report(t, name, changes)
			for m, name := range names {
				if means[m] < c.least[m] || highs[m] < 0 {
					t.Errorf("%s changes by %+.4f, at most %+.4f", name, means[m], highs[m])
				}
			}
		})
	}
}

// TestCrossValidated chooses the weights and the overlap without one group of questions, a
// repository or a set, and measures them on that group; then on all of them, which must
// give what the stage has.
func TestCrossValidated(t *testing.T) {
	if os.Getenv(everything) == "" {
		t.Skip(everything + " is not set: it embeds 5,183 abstracts and 737 chunks of code")
	}
	sets := []*set{codebases(t), manual(t), scifact(t)}
	now := current(t)
	for _, fusion := range []sdk.Fusion{weighted, rrf} {
		t.Run(fusion.Method, func(t *testing.T) {
			for _, s := range sets {
				s.retrieve(t, embed.MiniLM(), fusion)
			}
			g := gain(t, sets, settings())
			for _, s := range sets {
				chosen := map[string]setting{}
				var unseen, kept []measures
				for i, by := range g[s] {
					group := s.questions[i].group
					if _, ok := chosen[group]; !ok {
						chosen[group] = g.choose(sets, group)
						t.Logf("without %s: %+v", group, chosen[group])
					}
					unseen, kept = append(unseen, by[chosen[group]]), append(kept, by[now])
				}
				report(t, s.name+", chosen without its group", unseen)
				report(t, s.name+", as the stage is", kept)
			}
			if got := g.choose(sets, ""); fusion == weighted && got != now {
				t.Errorf("all sets choose %+v, and the stage has %+v", got, now)
			}
		})
	}
}
