package rerank

import (
	"math"
	"os"
	"testing"

	"github.com/racflow/racflow/plugins/internal/embed"
)

// everything is the variable that requests the long comparison, too.
const everything = "RACFLOW_TEST_QUALITY"

// setting holds the parameters of the stage: its weights, and the overlap from which texts count as
// copies.
type setting struct{ fields, identifiers, copied, diversity float64 }

// settings are the settings to choose from.
func settings() (all []setting) {
	for _, copies := range [][2]float64{{0, 0}, {.7, .25}, {.7, .5}, {.8, .5}, {.9, .5}, {.9, 1}} {
		for _, fields := range []float64{0, .1, .2, .3, .4} {
			for _, identifiers := range []float64{0, .1, .2, .3} {
				all = append(all, setting{fields, identifiers, copies[0], copies[1]})
			}
		}
	}
	return all
}

// current is the stage's setting.
func current(t testing.TB) setting {
	r := opened(t, "{}")
	return setting{r.Fields, r.Identifiers, copied, r.Diversity}
}

// gains holds the effects of settings, by set, question and setting.
type gains map[*set][]map[setting]measures

// gain measures settings on sets with candidates.
func gain(t testing.TB, sets []*set, of []setting) gains {
	r := opened(t, "{}")
	all := gains{}
	for _, s := range sets {
		for i := range s.questions {
			q := &s.questions[i]
			l := r.read(&q.item)
			without := q.measure(l.order(0, 0, 0, 0))
			by := map[setting]measures{}
			for _, c := range of {
				with := q.measure(l.order(c.fields, c.identifiers, c.copied, c.diversity))
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

// harm is how much lower nDCG may be on a set: chance has this effect on an equally good order.
const harm = .002

// choose returns the setting with the best mean of the measures over all questions except those of a group. Settings
// that harm any set are excluded. Each set counts the same.
func (g gains) choose(sets []*set, except string) (best setting) {
	most := math.Inf(-1)
	for _, c := range settings() {
		total, worst := 0.0, 0.0
		for _, s := range sets {
			var sum measures
			n := 0.0
			for i, by := range g[s] {
				if s.questions[i].group != except {
					n++
					for m, v := range by[c] {
						sum[m] += v
					}
				}
			}
			for _, v := range sum {
				total += v / max(1, n)
			}
			worst = min(worst, sum[3]/max(1, n))
		}
		if worst >= -harm && total > most+1e-9 {
			most, best = total, c
		}
	}
	return best
}

// report logs the paired differences of questions. It returns their means, and the upper ends of
// their intervals.
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

// TestQuality measures the stage on whole sets, with a fast embedder that the weights were not chosen with. On source
// code the gains must reach the lower ends of the intervals in TestCrossValidated. Prose must not lose more than its
// interval allows.
func TestQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("it searches among 737 chunks of code")
	}
	for name, c := range map[string]struct {
		set   func(testing.TB) *set
		least measures
	}{
		"codebases": {codebases, measures{.017, 0, -.016, .001}},
		"manual":    {manual, measures{-1, -1, -1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.set(t)
			s.retrieve(t, embed.Hashing(), weighted)
			means, highs := report(t, name, changes(t, s))
			for m, name := range names {
				if means[m] < c.least[m] || highs[m] < 0 {
					t.Errorf("%s changes by %+.4f, at most %+.4f", name, means[m], highs[m])
				}
			}
		})
	}
}

// TestCrossValidated chooses the weights and the overlap without one group of questions (a repository or a set), and
// measures them on that group. Then it chooses on all groups; the result must be the stage's defaults.
func TestCrossValidated(t *testing.T) {
	if os.Getenv(everything) == "" {
		t.Skip(everything + " is not set: it embeds 28,000 texts")
	}
	sets := []*set{codebases(t), manual(t), scifact(t)}
	for _, name := range []string{"golib", "cosqa"} {
		sets = append(sets, collection(t, name, "code"))
	}
	for _, name := range []string{"cranfield", "nfcorpus", "cacm", "cisi", "adi", "med"} {
		sets = append(sets, collection(t, name, "english"))
	}
	for _, s := range sets {
		s.retrieve(t, embed.MiniLM(), weighted)
	}
	crossValidate(t, sets)
	for _, s := range sets {
		s.retrieve(t, embed.MiniLM(), rrf)
	}
	for _, s := range sets {
		report(t, s.name+", by ranks", changes(t, s))
	}
}

func crossValidate(t *testing.T, sets []*set) {
	g := gain(t, sets, settings())
	for _, s := range sets {
		chosen := map[string]setting{}
		var unseen []measures
		for i, by := range g[s] {
			group := s.questions[i].group
			if _, ok := chosen[group]; !ok {
				chosen[group] = g.choose(sets, group)
				t.Logf("without %s: %+v", group, chosen[group])
			}
			unseen = append(unseen, by[chosen[group]])
		}
		report(t, s.name+", chosen without its group", unseen)
		report(t, s.name+", as the stage is", changes(t, s))
	}
	if got, now := g.choose(sets, ""), current(t); got != now {
		t.Errorf("all sets choose %+v, and the stage has %+v", got, now)
	}
}

// changes describes what the stage changes on a set.
func changes(t testing.TB, s *set) (all []measures) {
	now := current(t)
	for _, by := range gain(t, []*set{s}, []setting{now})[s] {
		all = append(all, by[now])
	}
	return all
}
