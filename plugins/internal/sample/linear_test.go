package sample

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func openedLinear(t testing.TB, dir, config string) *linearVoter {
	t.Helper()
	stage, err := Linear().Open(t.Context(), sdk.Setup{StateDir: dir}, []byte(config))
	must.Do(t, err)
	return stage.(*linearVoter)
}

// fit fits a voter, in batches of 7 rows.
func fit(ctx context.Context, v *linearVoter, all []sdk.TrainingRow) error {
	return v.Fit(ctx, func(yield func([]sdk.TrainingRow, error) bool) {
		for part := range slices.Chunk(all, 7) {
			if !yield(part, nil) {
				return
			}
		}
	})
}

func fitted(t testing.TB, config string, all []sdk.TrainingRow) *linearVoter {
	t.Helper()
	v := openedLinear(t, t.TempDir(), config)
	must.Do(t, fit(t.Context(), v, all))
	return v
}

func state(t testing.TB, v *linearVoter) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(v.dir, stateFile))
	must.Do(t, err)
	return raw
}

func sample(t testing.TB, v *linearVoter, items ...sdk.Item) [][]sdk.Sample {
	t.Helper()
	samples, err := v.Sample(t.Context(), sdk.Batch{Items: items})
	if err != nil || len(samples) != len(items) {
		t.Fatalf("%d results for %d items, error %v", len(samples), len(items), err)
	}
	return samples
}

// cloud makes rows of labels: their vectors lie around a centre, and their texts share a word.
func cloud(rows, labels, dimension int, noise float64) []sdk.TrainingRow {
	random := rand.New(rand.NewPCG(7, 7))
	unit := func(add []float32) []float32 {
		x, norm := make([]float32, dimension), 0.0
		for i := range x {
			x[i] = float32(random.NormFloat64() * noise)
			if add != nil {
				x[i] += add[i]
			}
			norm += float64(x[i]) * float64(x[i])
		}
		for i := range x {
			x[i] /= float32(math.Sqrt(norm))
		}
		return x
	}
	centres := make([][]float32, labels)
	for i := range centres {
		centres[i] = unit(nil)
	}
	all := make([]sdk.TrainingRow, rows)
	for i := range all {
		label := i % labels
		all[i] = sdk.TrainingRow{
			ID: fmt.Sprint("row-", i), Label: fmt.Sprintf("label %02d", label), Vector: unit(centres[label]),
			Text: fmt.Sprintf("word%d again w%d v%d", label, random.IntN(40), random.IntN(40)),
		}
	}
	return all
}

func items(rows []sdk.TrainingRow) []sdk.Item {
	all := make([]sdk.Item, len(rows))
	for i, r := range rows {
		all[i] = sdk.Item{ID: r.ID, Text: r.Text, Vector: r.Vector}
	}
	return all
}

func right(t testing.TB, v *linearVoter, rows []sdk.TrainingRow) (share float64) {
	t.Helper()
	for i, s := range sample(t, v, items(rows)...) {
		if s[0].Answers[0].Label == rows[i].Label {
			share += 1 / float64(len(rows))
		}
	}
	return share
}

func TestLearns(t *testing.T) {
	all := cloud(900, 9, 16, .25)
	if share := right(t, fitted(t, `{}`, all[:600]), all[600:]); share < .99 {
		t.Errorf("right on %.3f of what it has not seen", share)
	}
	for _, by := range []float32{.1, 20} { // vectors need not have length 1
		other := slices.Clone(all)
		for i := range other {
			other[i].Vector = slices.Clone(all[i].Vector)
			for j := range other[i].Vector {
				other[i].Vector[j] *= by
			}
		}
		if share := right(t, fitted(t, `{"features": 0}`, other[:600]), other[600:]); share < .9 {
			t.Errorf("right on %.3f with vectors of length %v", share, by)
		}
	}
	for i := range all { // only the words tell labels apart
		all[i].Vector = all[0].Vector
	}
	if share := right(t, fitted(t, `{}`, all[:600]), all[600:]); share < .99 {
		t.Errorf("right on %.3f by words", share)
	}
	if share := right(t, fitted(t, `{"features": 0}`, all[:600]), all[600:]); share > .2 {
		t.Errorf("right on %.3f by nothing", share)
	}
}

func TestBallot(t *testing.T) {
	all := cloud(240, 60, 8, 3) // so noisy that each label is possible
	for i, s := range sample(t, fitted(t, `{"features": 0}`, all), items(all)...) {
		answers, sum := s[0].Answers, 0.0
		for j, a := range answers {
			if sum += a.Weight; j > 0 && a.Weight > answers[j-1].Weight || a.Weight < least {
				t.Fatalf("item %d: %v", i, answers)
			}
		}
		if len(s) != 1 || len(answers) != most || sum > 1+1e-6 || sum < .5 {
			t.Fatalf("item %d: %d answers, together %v", i, len(answers), sum)
		}
	}
}

// TestFarAway: the farther an item is from all learned rows, the greater its distance. Where labels are sets, each
// label is separated from all others.
func TestLearnsSets(t *testing.T) {
	single := cloud(1200, 6, 16, .25)
	var all []sdk.TrainingRow
	for i := 0; i+7 < len(single); i++ { // two neighbouring rows have different labels
		a, b := single[i], single[i+1+i%4]
		mixed := slices.Clone(a.Vector)
		for j := range mixed {
			mixed[j] = (mixed[j] + b.Vector[j]) / float32(math.Sqrt2)
		}
		all = append(all, sdk.TrainingRow{ID: a.ID, Label: sdk.JoinLabels([]string{a.Label, b.Label}), Vector: mixed, Text: a.Text + " " + b.Text})
	}
	setup := sdk.Setup{StateDir: t.TempDir(), Labels: sdk.LabelForm{Many: true}}
	open := func() *linearVoter {
		stage, err := Linear().Open(t.Context(), setup, []byte(`{}`))
		must.Do(t, err)
		return stage.(*linearVoter)
	}
	v := open()
	must.Do(t, fit(t.Context(), v, all[:800]))
	for _, v := range []*linearVoter{v, open()} { // also after opening from its state
		right := 0
		for i, s := range sample(t, v, items(all[800:])...) {
			var set []string
			for _, a := range s[0].Answers {
				if a.Weight >= .5 {
					set = append(set, a.Label)
				}
			}
			if sdk.JoinLabels(set) == all[800+i].Label {
				right++
			}
		}
		if share := float64(right) / float64(len(all)-800); share < .95 {
			t.Errorf("right on %.3f of the sets", share)
		}
	}
}

func TestFarAway(t *testing.T) {
	v := fitted(t, `{"features": 0}`, cloud(200, 4, 8, .2))
	near := items(cloud(1, 4, 8, .2))[0]
	half, opposite := near, near
	half.Vector, opposite.Vector = slices.Clone(near.Vector), slices.Clone(near.Vector)
	for i := range near.Vector {
		half.Vector[i] /= 2
		opposite.Vector[i] = .01
	}
	s := sample(t, v, near, half, opposite)
	if a, b, c := s[0][0].Distance, s[1][0].Distance, s[2][0].Distance; !(a > 0 && a < b && b < c && c <= 1) {
		t.Errorf("distances %v, %v and %v", a, b, c)
	}
}

func TestAbstains(t *testing.T) {
	all := cloud(40, 2, 4, .1)
	item := items(all)[0]
	unlabelled := slices.Clone(all)
	for i := range unlabelled {
		unlabelled[i].Label = ""
	}
	for name, v := range map[string]*linearVoter{
		"not fitted": openedLinear(t, t.TempDir(), `{}`),
		"no folder":  openedLinear(t, "", `{}`),
		"no labels":  fitted(t, `{}`, unlabelled),
		"no rows":    fitted(t, `{}`, nil),
	} {
		if s := sample(t, v, item); s[0] != nil {
			t.Errorf("%s: %v", name, s)
		}
	}
	v := fitted(t, `{}`, append(unlabelled, append(all, sdk.TrainingRow{Label: "bare", Text: "no vector"}, sdk.TrainingRow{Label: "bare", Vector: make([]float32, 4)})...))
	if m := v.model.Load(); len(m.labels) != 2 {
		t.Errorf("labels %q", m.labels)
	}
	if s := sample(t, v, sdk.Item{Text: item.Text}, sdk.Item{Vector: make([]float32, 4)}, item); s[0] != nil || s[1] != nil || s[2] == nil {
		t.Errorf("samples %v: want the last alone", s)
	}
	s, err := v.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{Vector: []float32{1}}, item}})
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 1 || failed[0] == nil || s[1] == nil {
		t.Errorf("a vector of another dimension: %v, %v", s, err)
	}
}

func TestOneLabel(t *testing.T) {
	v := fitted(t, `{}`, cloud(40, 1, 4, .1))
	if s := sample(t, v, sdk.Item{Text: "x", Vector: []float32{1, 0, 0, 0}}); !reflect.DeepEqual(s[0][0].Answers, []sdk.Answer{{Label: "label 00", Weight: 1}}) {
		t.Errorf("%v", s)
	}
}

// The learned model depends only on the rows, not on threads or the order of rows.
func TestSameBytes(t *testing.T) {
	must.NoRace(t)
	all := cloud(500, 37, 40, .5)
	want := state(t, fitted(t, `{"max_rows": 450}`, all))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, threads := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(threads)
		if !bytes.Equal(want, state(t, fitted(t, `{"max_rows": 450}`, all))) {
			t.Errorf("other bytes with %d threads", threads)
		}
	}
	slices.Reverse(all)
	if !bytes.Equal(want, state(t, fitted(t, `{"max_rows": 450}`, all))) {
		t.Error("other bytes in another order")
	}
	all[0].Vector = all[1].Vector
	if bytes.Equal(want, state(t, fitted(t, `{"max_rows": 450}`, all))) {
		t.Error("the same bytes from other rows")
	}
}

func TestDamagedState(t *testing.T) {
	v := fitted(t, `{}`, cloud(90, 3, 8, .3))
	whole := state(t, v)
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, raw := range map[string][]byte{"empty": {}, "short": whole[:len(whole)-1], "flipped": flipped, "other": []byte(strings.Repeat("no state ", 10))} {
		must.Do(t, os.WriteFile(filepath.Join(v.dir, stateFile), raw, 0o600))
		_, err := Linear().Open(t.Context(), sdk.Setup{StateDir: v.dir}, nil)
		if err == nil || !strings.Contains(err.Error(), "remove the folder "+v.dir) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFitFails(t *testing.T) {
	all := cloud(90, 3, 8, .3)
	v := fitted(t, `{}`, all)
	before := state(t, v)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	torn := errors.New("torn")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"cancelled": {fit(cancelled, v, all), context.Canceled.Error()},
		"dimension": {fit(t.Context(), v, append(slices.Clone(all), sdk.TrainingRow{Label: "x", Vector: []float32{1}})), "1 dimensions, others have 8"},
		"rows":      {v.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(nil, torn) }), "torn"},
		"labels":    {fit(t.Context(), openedLinear(t, t.TempDir(), `{"max_rows": 100}`), cloud(101, 101, 4, .1)), "101 labels, and there is memory for 100 rows"},
		"folder":    {fit(t.Context(), openedLinear(t, "", `{}`), all), "no folder"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, test.err, test.want)
		}
	}
	if !bytes.Equal(before, state(t, v)) {
		t.Error("a fit that failed has changed the state")
	}
}

// If there are too many rows, small labels stay whole and large ones share the rest.
func TestSample(t *testing.T) {
	r := &rows{max: 100, byLabel: map[string][]linearRow{}}
	for i := range 1000 {
		label := "large"
		switch {
		case i%100 == 0:
			label = "small"
		case i%3 == 0:
			label = "middle"
		}
		must.Do(t, r.add(&sdk.TrainingRow{ID: fmt.Sprint(i), Label: label, Vector: []float32{1}}))
		if r.count > 125 {
			t.Fatalf("%d rows are kept", r.count)
		}
	}
	_, all, err := r.sorted()
	must.Do(t, err)
	got := map[string]int{}
	for _, row := range all {
		got[row.label]++
	}
	if want := map[string]int{"small": 10, "middle": 45, "large": 45}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

// The weights are close to the minimum of half their squares, the constant's counted from -1, plus the squared
// violations of the margin: gradient descent from there gains little. The result for a label does not depend on its
// block.
func TestMinimum(t *testing.T) {
	for _, labels := range []int{3, 160} {
		m := newModel(make([]string, labels), 4, []float32{1, 0, 2, 1})
		m.many = true // scores are margins
		var examples []example
		for i, r := range cloud(320, 8, 4, .4) {
			examples = append(examples, example{vector: r.Vector, labels: []int{i % labels}, features: m.weigh([]feature{{Row: 0, Factor: .5}, {Row: int32(1 + i%3), Factor: -1}})})
			if i%5 == 0 && labels > 3 {
				examples[i].labels = append(examples[i].labels, (i+7)%labels)
			}
		}
		must.Do(t, m.train(t.Context(), examples, textNorm))
		gradient := make([]float32, len(m.weights))
		objective := func() (sum float64) {
			copy(gradient, m.weights)
			for label := range labels {
				gradient[4*m.width+label]++
			}
			for _, g := range gradient {
				sum += float64(g) * float64(g) / 2
			}
			m.eachScore(examples, func(e example, scores []float32) {
				for label, s := range scores {
					y := float32(-1)
					if slices.Contains(e.labels, label) {
						y = 1
					}
					off := max(1-y*s, 0)
					sum += float64(cost * off * off)
					for _, f := range e.terms(nil) {
						gradient[int(f.Row)*m.width+label] -= 2 * cost * off * y * f.Factor
					}
				}
			})
			return sum
		}
		learnt, least := objective(), 0.0
		for range 200 {
			for i, g := range gradient {
				m.weights[i] -= g / 2000
			}
			least = objective()
		}
		if !(least < learnt && learnt < 1.15*least) {
			t.Errorf("%d labels: %v, the minimum is at most %v", labels, learnt, least)
		}
	}
}

// If vectors are mostly 0, only the other numbers are stored. The learned model is the same to the bit.
func TestMostlyZero(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	kept := &rows{max: 100, byLabel: map[string][]linearRow{}}
	var models [2]*model
	dense, inputs := make([]example, 70), make([]example, 70)
	for i := range dense {
		vector := make([]float32, 300)
		for range 1 + r.IntN(100) {
			vector[r.IntN(len(vector))] = float32(r.NormFloat64())
		}
		must.Do(t, kept.add(&sdk.TrainingRow{ID: fmt.Sprint(i), Label: "a", Vector: vector}))
		dense[i] = example{vector: vector, labels: []int{i % 3}}
		inputs[i] = example{inputs: appendInputs(nil, vector), labels: []int{i % 3}}
	}
	for i, examples := range [][]example{dense, inputs} {
		models[i] = newModel([]string{"a", "b", "c"}, 300, nil)
		must.Do(t, models[i].train(t.Context(), examples, textNorm))
	}
	if !slices.Equal(models[0].weights, models[1].weights) || simd.Dot(models[0].weights, models[0].weights) == 0 {
		t.Error("other weights are learnt without zeros")
	}
	_, all, err := kept.sorted()
	if err != nil || len(all) != len(dense) || slices.ContainsFunc(all, func(one linearRow) bool { return one.vector != nil }) {
		t.Errorf("%d rows, %v: their zeros are kept", len(all), err)
	}
}

// Only the beginning of a text counts.
func TestLongText(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 2000), "x" + strings.Repeat("é", 2000), strings.Repeat("a", 5000)} {
		if got := beginning(text); len(got) > textBytes || len(got) < textBytes-1 || !strings.HasPrefix(text, got) || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%d bytes", len(got))
		}
	}
	v := fitted(t, `{}`, cloud(90, 3, 8, .3))
	item := items(cloud(1, 1, 8, .3))[0]
	item.Text = strings.Repeat("word1 ", 1000)
	longer := item
	longer.Text += "word2"
	if s := sample(t, v, item, longer); !reflect.DeepEqual(s[0], s[1]) {
		t.Error("the end of a long text counts")
	}
}

// TestStrongestFeatures: if there are too many features, those with the greatest absolute numbers are kept, in their
// order; in a tie, the first.
func TestStrongestFeatures(t *testing.T) {
	var all, want []feature
	for i := range 2*strongest + 1 {
		f := feature{Row: int32(i), Factor: 1}
		switch {
		case i%2 == 1 && i > 99:
			f.Factor = float32(-2 - i%7)
			want = append(want, f)
		case len(want) < 50: // the first of the others; below they tie
			want = append(want, f)
		}
		all = append(all, f)
	}
	stronger := len(slices.DeleteFunc(slices.Clone(want), func(f feature) bool { return f.Factor == 1 }))
	if stronger+50 != strongest {
		t.Fatalf("%d are stronger", stronger)
	}
	if got := keepStrongest(all); !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestGolden(t *testing.T) {
	v := fitted(t, `{}`, cloud(120, 4, 8, .4))
	apitest.Compare(t, Linear(), sample(t, v, items(cloud(124, 4, 8, .4)[120:])...), "6 a291c8387825c329")
}

func TestLinearConformance(t *testing.T) { sdktest.Stage(t, Linear(), `{}`) }

func TestLinearArguments(t *testing.T) {
	for argument, config := range map[string]string{"features": `{"features": -1}`, "max_rows": `{"max_rows": 99}`} {
		_, err := Linear().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != argument {
			t.Errorf("%s: error %v, want one about %s", config, err, argument)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	for _, size := range [][2]int{{2_000, 150}, {15_000, 150}, {15_000, 10}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			all := cloud(size[0], size[1], 384, .2)
			for i := range all {
				all[i].Text += strings.Repeat(" some more words of a sentence", 2)
			}
			for b.Loop() {
				fitted(b, `{}`, all)
			}
		})
	}
}
