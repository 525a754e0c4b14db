package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

// population is a distribution of items, the surest first. For the item at u, from 0 to 1, it
// returns the confidence, which falls with u, the probability that the item is out of scope, and
// the probability that the answer to an item in scope is right.
type population struct {
	confidence, outside, right func(u float64) float64
}

// cells is the number of equally likely items of a population. So the truth about it can be counted
// instead of estimated.
const cells = 20_000

type cell struct {
	confidence, outside, right float64
	accuracy                   float64 // of this cell and all surer cells
	missed                     float64 // share of all out-of-scope items that these cells have
}

func (p population) cells() []cell {
	all := make([]cell, cells)
	right, outside := 0., 0.
	for c := range all {
		u := (float64(c) + .5) / cells
		all[c] = cell{confidence: p.confidence(u), outside: p.outside(u), right: p.right(u)}
		right += (1 - all[c].outside) * all[c].right
		outside += all[c].outside
		all[c].accuracy, all[c].missed = right/float64(c+1), outside
	}
	for c := range all {
		all[c].missed /= max(outside, 1)
	}
	return all
}

// answered returns the number of cells that a threshold answers.
func answered(all []cell, threshold float64) int {
	return sort.Search(cells, func(c int) bool { return all[c].confidence < threshold })
}

// oracle is how many cells the lowest threshold that keeps the goal answers.
func oracle(all []cell, accuracy float64) int {
	for n := cells; n > 0; n-- {
		if (n == cells || all[n].confidence < all[n-1].confidence) && all[n-1].accuracy >= accuracy {
			return n
		}
	}
	return 0
}

// draw draws rows, the surest first.
func draw(all []cell, r *rand.Rand, rows []PromiseItem) {
	at := make([]float64, len(rows))
	sum := 0.
	for i := range at {
		sum += r.ExpFloat64()
		at[i] = sum
	}
	sum += r.ExpFloat64()
	for i, a := range at {
		c := &all[int(a/sum*cells)] // a/sum are sorted uniform numbers
		outside := r.Float64() < c.outside
		rows[i] = PromiseItem{Confidence: c.confidence, Answered: true, Outside: outside, Right: r.Float64() < c.right && !outside}
	}
}

func none(float64) float64 { return 0 }

// levels is a population with few confidences. Each has its share of the items, and the probability
// that its answers are right.
func levels(all ...[3]float64) population {
	at := func(u float64) [3]float64 {
		for _, l := range all[:len(all)-1] {
			if u -= l[1]; u < 0 {
				return l
			}
		}
		return all[len(all)-1]
	}
	return population{func(u float64) float64 { return at(u)[0] }, none, func(u float64) float64 { return at(u)[2] }}
}

func populations() map[string]population {
	right := func(u float64) float64 { return .998 - .6*math.Pow(u, 4) }
	return map[string]population{
		"calibrated":    {right, none, right},
		"overconfident": {func(u float64) float64 { return 1 - math.Pow(1-right(u), 3) }, none, right},
		"errors in the tail": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			return .996 - .8*math.Pow(u, 10)
		}},
		"errors everywhere": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			return .991 - .8*math.Pow(u, 12)
		}},
		"the surest are worse": {func(u float64) float64 { return 1 - u }, none, func(u float64) float64 {
			if u < .05 {
				return .9
			}
			return .995 - .7*math.Pow(u, 6)
		}},
		"out of scope": {func(u float64) float64 { return 1 - .9*u }, func(u float64) float64 {
			return min(1, .002+.9*math.Pow(u, 5))
		}, func(u float64) float64 { return .996 - .3*math.Pow(u, 4) }},
		"3 values": levels([3]float64{1, .6, .993}, [3]float64{.67, .25, .93}, [3]float64{.33, .15, .5}),
		"5 values": levels([3]float64{1, .3, .999}, [3]float64{.8, .3, .99}, [3]float64{.6, .2, .97}, [3]float64{.4, .1, .85}, [3]float64{.2, .1, .5}),
		"6 values": levels([3]float64{1, .45, .995}, [3]float64{.83, .2, .985}, [3]float64{.67, .15, .95}, [3]float64{.5, .1, .85}, [3]float64{.33, .06, .6}, [3]float64{.17, .04, .4}),
	}
}

// TestDraws draws rows from populations whose accuracy is known. At most one promise in twenty is
// broken, and promises cover most of the answers that would be possible if the accuracy were known.
func TestDraws(t *testing.T) {
	draws := 1000
	if testing.Short() {
		draws = 100
	}
	atMost := .05 + 2*math.Sqrt(.05*.95/float64(draws))
	share, settings := 0., 0.
	for name, p := range populations() {
		all := p.cells()
		for _, s := range []struct {
			accuracy float64
			rows     int
		}{{.95, 600}, {.95, 2000}, {.98, 2000}} {
			g := PromiseGoal{s.accuracy, .95}
			r := rand.New(rand.NewPCG(uint64(len(name)), uint64(s.rows)))
			rows, start := make([]PromiseItem, s.rows), g.start(s.rows)
			broken, brokenOutside, sum := 0, 0, 0
			for range draws {
				draw(all, r, rows)
				promise, err := g.find(rows, start)
				if err != nil {
					continue
				}
				n := answered(all, promise.Threshold(false))
				sum += n
				if all[n-1].accuracy < g.Accuracy {
					broken++
				}
				if 1-all[n-1].missed < promise.Caught {
					brokenOutside++
				}
			}
			of := oracle(all, g.Accuracy)
			got := float64(sum) / float64(draws) / float64(of)
			t.Logf("%-20s %v, %4d rows: broken %2d, out of scope %2d; %.2f of the oracle's %.2f", name, g, s.rows, broken, brokenOutside, got, float64(of)/cells)
			if max(broken, brokenOutside) > int(atMost*float64(draws)) {
				t.Errorf("%s: %v on %d rows is broken in %d of %d draws, out of scope in %d", name, g, s.rows, broken, draws, brokenOutside)
			}
			if s.rows == 2000 {
				share, settings = share+got, settings+1
			}
		}
	}
	t.Logf("%.3f of the oracle's answers", share/settings)
	if share/settings < .8 {
		t.Errorf("promises answer %.3f of what could be answered", share/settings)
	}
}

// TestUnknownTexts: a promise made on rows with a tenth out of scope is kept with a tenth, with
// less and with none. A promise made only on known texts is broken with a tenth out of scope.
func TestUnknownTexts(t *testing.T) {
	draws := 1000
	if testing.Short() {
		draws = 200
	}
	const share = .1
	g := PromiseGoal{.95, .95}
	right := func(u float64) float64 { return .998 - .5*math.Pow(u, 4) }
	surer := func(u float64) float64 { return u * u * u } // of the unknown texts, the share that is as sure as the surest u of the known texts
	accuracy := func(threshold, unknown float64) float64 {
		u := 1 - threshold
		known := .998*u - .1*math.Pow(u, 5) // the integral of right
		return (1 - unknown) * known / ((1-unknown)*u + unknown*surer(u))
	}
	r := rand.New(rand.NewPCG(7, 36))
	broken := func(unknown int, shares ...float64) []int {
		all := make([]int, len(shares))
		for range draws {
			rows := make([]PromiseItem, 1000)
			for i := range rows {
				u, outside := r.Float64(), i < unknown
				if rows[i] = (PromiseItem{Text: fmt.Sprint(i), Answered: true, Right: r.Float64() < right(u)}); outside {
					u, rows[i].Outside, rows[i].Right = math.Cbrt(u), true, false
				}
				rows[i].Confidence = 1 - u
			}
			p, err := FindPromise(rows, g)
			if err != nil {
				continue
			}
			if want := float64(unknown) / 1000; p.Unknown() != want {
				t.Fatalf("it holds up to %v, want %v", p.Unknown(), want)
			}
			for i, s := range shares {
				if accuracy(p.Threshold(false), s) < g.Accuracy {
					all[i]++
				}
			}
		}
		return all
	}
	most := int((.05 + 2*math.Sqrt(.05*.95/float64(draws))) * float64(draws))
	mixed := broken(share*1000, share, share/2, 0)
	alone := broken(0, 0, share)
	t.Logf("%d promises: made on rows of which a tenth is out of scope, %d are broken if a tenth, a twentieth, none of the texts is; made on rows in scope, %d if none, a tenth is", draws, mixed, alone)
	if slices.Max(mixed) > most || alone[0] > most {
		t.Errorf("%d and %d promises are broken, at most %d may be", mixed, alone[0], most)
	}
	if alone[1] < draws/2 {
		t.Errorf("a promise on known texts is broken %d times with a tenth of unknown ones", alone[1])
	}
}

// answers returns rows with falling confidences; the rows at the given positions are wrong.
func answers(n int, wrong ...int) []PromiseItem {
	rows := make([]PromiseItem, n)
	for i := range rows {
		rows[i] = PromiseItem{Text: fmt.Sprint(i), Confidence: 1 - float64(i)/float64(n), Answered: true, Right: true}
	}
	for _, i := range wrong {
		rows[i].Right = false
	}
	return rows
}

func repeat(rows []PromiseItem, times int) (all []PromiseItem) {
	for range times {
		all = append(all, rows...)
	}
	return all
}

func with(rows []PromiseItem, more ...PromiseItem) []PromiseItem { return append(rows, more...) }

func TestFind(t *testing.T) {
	tail := make([]int, 100)
	for i := range tail {
		tail[i] = 300 + i
	}
	tests := map[string]struct {
		items     []PromiseItem
		goal      PromiseGoal
		threshold float64
		answered  int
		right     int
	}{
		"no error at all":          {answers(400), PromiseGoal{.98, .95}, 0, 400, 400},
		"just enough":              {answers(149), PromiseGoal{.98, .95}, 0, 149, 149},
		"errors after the 300th":   {answers(400, tail...), PromiseGoal{.95, .95}, .231, 308, 300},
		"less confidence, more":    {answers(400, tail...), PromiseGoal{.95, .5}, .214, 315, 300},
		"copies are one row":       {repeat(answers(149), 3), PromiseGoal{.98, .95}, 0, 149, 149},
		"a wrong copy is wrong":    {with(answers(300), PromiseItem{Text: "299", Answered: true, Confidence: .001}), PromiseGoal{.98, .95}, 0, 300, 299},
		"all alike":                {sameConfidence(answers(300, 7)), PromiseGoal{.98, .95}, 0, 300, 299},
		"unanswered ones are none": {with(answers(149), PromiseItem{Text: "x"}), PromiseGoal{.98, .95}, 0, 149, 149},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := FindPromise(test.items, test.goal)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Threshold(false); got != test.threshold || p.Answered != test.answered || p.Right != test.right {
				t.Errorf("threshold %v, %d answered, %d right; want %v, %d, %d", got, p.Answered, p.Right, test.threshold, test.answered, test.right)
			}
		})
	}
}

func sameConfidence(rows []PromiseItem) []PromiseItem {
	for i := range rows {
		rows[i].Confidence = .5
	}
	return rows
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		items []PromiseItem
		goal  PromiseGoal
		want  string
	}{
		"too few":       {answers(80), PromiseGoal{.98, .95}, "0.98 with 95 % confidence needs at least 149 rows without an error above the threshold; there are 80"},
		"too few texts": {repeat(answers(80), 9), PromiseGoal{.98, .95}, "there are 80 (the same text counts once)"},
		"all":           {answers(1000), PromiseGoal{1, .95}, "no number of rows can show that all answers are right"},
		"more than all": {answers(1000), PromiseGoal{98, .95}, "an accuracy of 98 cannot be promised"},
		"certainty":     {answers(1000), PromiseGoal{.98, 1}, "a confidence of 1 cannot be had"},
		"rare errors": {
			answers(400, 1, 3), PromiseGoal{.98, .95},
			"no threshold shows 0.98 with 95 % confidence: of the 149 surest of 400 answers 2 are wrong, and at most 0 may be. They show no more than 0.958",
		},
		"many errors":                    {answers(400, 1, 3, 5, 7, 9), PromiseGoal{.98, .95}, "5 are wrong, and at most 0 may be. They show no more than 0.930"},
		"one value with too many errors": {sameConfidence(answers(400, 1, 2, 3, 4, 5, 6, 7, 8, 9)), PromiseGoal{.98, .95}, "of the 400 surest of 400 answers 9 are wrong, and at most 3 may be"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := FindPromise(test.items, test.goal)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestThresholdIsReadable: the threshold is a short number between two confidences.
func TestThresholdIsReadable(t *testing.T) {
	tests := []struct {
		least, beyond, below, inclusive float64
	}{
		{.5, .4, .45, .45},
		{.52, .38, .45, .45},
		{.7, .28, .5, .5},
		{.30000000000000004, .2, .25, .25},
		{.9995, .9991, .9993, .9993},
		{.2, -1, 0, -.01},
		{.2, 0, .1, .1},
		{.30000000000000004, .3, .30000000000000004, .3}, // adjacent numbers: nothing is between them
	}
	for _, test := range tests {
		p := Promise{least: test.least, beyond: test.beyond}
		if below, inclusive := p.Threshold(false), p.Threshold(true); below != test.below || inclusive != test.inclusive {
			t.Errorf("%v to %v: %v and %v, want %v and %v", test.beyond, test.least, below, inclusive, test.below, test.inclusive)
		}
	}
}

// TestOutside counts out-of-scope rows: missed with an answer at or above the threshold, caught if
// flagged or without an answer.
func TestOutside(t *testing.T) {
	items := answers(400)
	for i := 300; i < 400; i++ {
		items[i].Outside, items[i].Right = true, false
	}
	items[10].Outside, items[10].Right = true, false
	for i := range 99 {
		items = append(items, PromiseItem{Text: fmt.Sprint("none ", i), Outside: true, Right: true})
	}
	p, err := FindPromise(items, PromiseGoal{.95, .95})
	if err != nil {
		t.Fatal(err)
	}
	if p.Outside != 200 || p.Missed != 1+p.Answered-300 || p.Right != 299 || p.Caught < .89 || p.Caught > 1-float64(p.Missed)/200 {
		t.Errorf("%+v", p)
	}
}
