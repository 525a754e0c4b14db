package doctor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

type votes = map[string]float64

// drawn returns rows with votes of calibrated voters; sharpness is how much weight the right label gets. A
// share of the labels is swapped at random.
func drawn(n, labels int, sharpness, swapped float64) (rows []VotedRow, wrong map[int]bool) {
	random := rand.New(rand.NewPCG(5, 6))
	name := func(i int) string { return fmt.Sprint("label ", i) }
	wrong = map[int]bool{}
	for i := range n {
		row, sum, at := VotedRow{Text: fmt.Sprint(i), Votes: votes{}}, 0., 0
		strength := sharpness * random.Float64()
		own := random.IntN(labels)
		for l := range labels {
			p := math.Exp(random.NormFloat64() * 2)
			if l == own {
				p *= math.Exp(strength)
			}
			row.Votes[name(l)] = p
			sum += p
		}
		u := random.Float64() * sum // the true label is drawn from the voters' probabilities
		for ; at < labels-1 && u > row.Votes[name(at)]; at++ {
			u -= row.Votes[name(at)]
		}
		for l := range row.Votes {
			row.Votes[l] /= sum
		}
		if row.Label = name(at); random.Float64() < swapped {
			row.Label = name((at + 1 + random.IntN(labels-1)) % labels)
			wrong[i] = true
		}
		rows = append(rows, row)
	}
	return rows, wrong
}

// TestExpected: named rows are wrong as often as predicted, and no row is named if voters err and
// labels are right.
func TestExpected(t *testing.T) {
	for _, c := range []struct {
		n, labels          int
		sharpness, swapped float64
		least              float64 // least share of the swapped rows that are found
	}{
		{600, 40, 8, 0, 0}, {600, 40, 20, 0, 0}, {300, 6, 6, 0, 0}, {40, 4, 12, 0, 0},
		{600, 40, 20, .05, .5}, {1000, 40, 12, .1, .5}, {1000, 10, 20, .02, .5}, {1000, 6, 14, .1, .5},
	} {
		rows, wrong := drawn(c.n, c.labels, c.sharpness, c.swapped)
		found := suspects(rows)
		right, expected := 0., 0.
		for _, s := range found {
			expected += s.Wrong
			if wrong[s.Row] {
				right++
			}
		}
		if c.swapped == 0 && len(found) > 0 {
			t.Errorf("%+v: %+v", c, found)
		}
		if math.Abs(right-expected) > 2*math.Sqrt(max(expected, 1)) || right < c.least*float64(len(wrong)) {
			t.Errorf("%+v: %d named, %v wrong, %.1f expected, %d swapped", c, len(found), right, expected, len(wrong))
		}
	}
	rows, _ := drawn(200, 40, 20, .05)
	if some := suspects(rows); len(some) == 0 || !reflect.DeepEqual(some, suspects(rows)) {
		t.Errorf("the same rows have other suspects than %+v", some)
	}
}

func TestSuspects(t *testing.T) {
	var right []VotedRow
	for i := range 40 {
		label, other := "a", "b"
		if i%2 == 1 {
			label, other = other, label
		}
		right = append(right, VotedRow{Label: label, Votes: votes{label: .9, other: .08, "c": .02}})
	}
	for _, c := range []struct {
		name string
		rows []VotedRow
		want []Suspect // without Wrong
	}{
		{"none", nil, nil},
		{"all right", right, nil},
		{"one that is wrong for certain", append(slices.Clone(right), VotedRow{Label: "a", Votes: votes{"b": .998, "a": .0001, "c": .0019}}), []Suspect{{Row: 40, Label: "b", Share: .998, Self: .0001, Relabel: true}}},
		{"one that is not certain", append(slices.Clone(right), VotedRow{Label: "a", Votes: votes{"b": .55, "a": .42, "c": .03}}), nil},
		{"without votes", append(slices.Clone(right), VotedRow{Label: "a"}), nil},
		{"the surest first", append(slices.Clone(right), VotedRow{Label: "a", Votes: votes{"b": .6, "a": .001, "c": .399}}, VotedRow{Label: "b", Votes: votes{"a": .99, "b": .0001, "c": .0099}}),
			[]Suspect{{Row: 41, Label: "a", Share: .99, Self: .0001, Relabel: true}, {Row: 40, Label: "b", Share: .6, Self: .001}}},
	} {
		got := suspects(c.rows)
		for i := range got {
			if got[i].Wrong < minWrong || got[i].Wrong > 1 {
				t.Errorf("%s: %+v", c.name, got[i])
			}
			got[i].Wrong = 0
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
