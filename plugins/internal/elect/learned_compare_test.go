package elect_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/elect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// openLearned opens an election with a config.
func open(t testing.TB, stage sdk.Stage, config string) sdk.Elector {
	t.Helper()
	e, err := stage.Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, []byte(config))
	must.Do(t, err)
	return e.(sdk.Elector)
}

// fitted opens a learned election and fits it, in batches of 64 rows.
func fitted(t testing.TB, rows []sdk.TrainingRow) sdk.Elector {
	t.Helper()
	e := open(t, elect.Learned(), `{}`)
	must.Do(t, fit(t.Context(), e, rows))
	return e
}

func fit(ctx context.Context, e sdk.Elector, rows []sdk.TrainingRow) error {
	return e.(sdk.Fitter).Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		for part := range slices.Chunk(rows, 64) {
			if !yield(part, nil) {
				return
			}
		}
	})
}

func learnedElect(t testing.TB, e sdk.Elector, labels []string, rows []sdk.TrainingRow) []sdk.Verdict {
	t.Helper()
	b := sdk.Batch{Labels: labels, Items: make([]sdk.Item, len(rows))}
	for i, r := range rows {
		b.Items[i].Samples = r.Samples
	}
	verdicts, err := e.Elect(t.Context(), b)
	if err != nil || len(verdicts) != len(rows) {
		t.Fatalf("%d verdicts for %d rows, error %v", len(verdicts), len(rows), err)
	}
	return verdicts
}

// of keeps only the votes of some voters.
func of(rows []sdk.TrainingRow, voters ...string) []sdk.TrainingRow {
	some := slices.Clone(rows)
	for i := range some {
		some[i].Samples = slices.DeleteFunc(slices.Clone(some[i].Samples), func(s sdk.Sample) bool { return !slices.Contains(voters, s.Voter) })
	}
	return some
}

// subsets yields every non-empty subset of voters.
func subsets(voters []string) (all [][]string) {
	for set := 1; set < 1<<len(voters); set++ {
		var some []string
		for i, v := range voters {
			if set>>i&1 == 1 {
				some = append(some, v)
			}
		}
		all = append(all, some)
	}
	return all
}

// right returns for each row whether the verdict is right.
func right(rows []sdk.TrainingRow, verdicts []sdk.Verdict) []bool {
	all := make([]bool, len(rows))
	for i, v := range verdicts {
		all[i] = v.Answer != "" && v.Answer == rows[i].Label
	}
	return all
}

// alone returns for each row whether a single voter is right: by the answer with the greatest share of its ballot.
func alone(rows []sdk.TrainingRow, voter string) []bool {
	all := make([]bool, len(rows))
	for i, r := range of(rows, voter) {
		shares := ballot.Mean(r.Samples, nil)
		all[i] = len(shares) > 0 && shares[0].Label == r.Label
	}
	return all
}

func share(all []bool) float64 {
	n := 0
	for _, ok := range all {
		if ok {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

// better returns the difference of accuracy between a and b, with its standard error.
func better(a, b []bool) (by, se float64) {
	squares, n := 0.0, float64(len(a))
	for i := range a {
		switch {
		case a[i] && !b[i]:
			by, squares = by+1/n, squares+1/n
		case b[i] && !a[i]:
			by, squares = by-1/n, squares+1/n
		}
	}
	return by, math.Sqrt((squares - by*by) / n)
}

// compared counts subsets of voters. An election that was fitted on some rows meets, on other rows,
// the voter that is best on those.
type compared struct {
	labels       []string
	rows, others []sdk.TrainingRow

	onRows, onOthers map[string][]bool // where each voter alone is right
	sets             int
	shown            int // sets where the best voter is certainly at most half a point better
	lost             int // sets where it is certainly more than half a point better
	gain             float64
}

func newCompared(labels []string, rows, others []sdk.TrainingRow, voters []string) *compared {
	c := &compared{labels: labels, rows: rows, others: others, onRows: map[string][]bool{}, onOthers: map[string][]bool{}}
	for _, v := range voters {
		c.onRows[v], c.onOthers[v] = alone(rows, v), alone(others, v)
	}
	return c
}

func (c *compared) add(t *testing.T, voters []string) {
	t.Helper()
	best := slices.MaxFunc(voters, func(a, b string) int { return cmp.Compare(share(c.onRows[a]), share(c.onRows[b])) })
	e, others := fitted(t, of(c.rows, voters...)), of(c.others, voters...)
	by, se := better(c.onOthers[best], right(others, learnedElect(t, e, c.labels, others)))
	c.sets++
	c.gain -= by
	if by+1.645*se <= .005 {
		c.shown++
	}
	if by-1.645*se > .005 {
		c.lost++
	}
	if by > .002 {
		t.Logf("%s is better by %.2f points, standard error %.2f, than %v", best, 100*by, 100*se, e.(sdk.Resolver).Resolved())
	}
}

func (c *compared) report(t *testing.T) {
	t.Helper()
	t.Logf("%d subsets: %.2f points better than the best voter; surely no worse than half a point in %d, surely worse in %d",
		c.sets, 100*c.gain/float64(c.sets), c.shown, c.lost)
	if c.lost > 0 {
		t.Errorf("for %d of %d subsets the best voter is certainly more than half a point better", c.lost, c.sets)
	}
}
