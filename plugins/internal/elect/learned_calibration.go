package elect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file makes a confidence of the probability of an answer (Platt, "Probabilistic outputs
// for support vector machines and comparisons to regularized likelihood methods", 1999).
//
// The weights suit elections in which every voter votes. Where some are missing, because a
// cascade did not ask them, a service failed or a budget was spent, the probabilities of the
// others' answers are too low. So sets of voters that may be missing have a calibration each: the
// sets that are missing on some of the rows, each voter, all that give distributions, and all
// that give single answers. Another set has the calibration of the one that differs from it by
// the fewest voters.

// calibration makes a confidence of log-odds: they times slope, plus offset.
type calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// uncalibrated leaves probabilities as they are.
var uncalibrated = calibration{Slope: 1}

func (c calibration) confidence(probability float64) float64 {
	return sigmoid(c.Slope*logOdds(probability) + c.Offset)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// surest bounds log-odds: no number of rows tells a probability from 1 that is closer.
const surest = 12

func logOdds(probability float64) float64 {
	return max(-surest, min(surest, math.Log(probability/(1-probability))))
}

// without parts the names of missing voters in a calibration's name, and the name itself from
// what it has.
const and, without = " and ", " without "

// argument is the calibrations of a model as an argument of the election.
func (m *model) argument() map[string]float64 {
	all := map[string]float64{"slope": m.Calibration.Slope, "offset": m.Calibration.Offset}
	for missing, c := range m.Without {
		all["slope"+without+missing], all["offset"+without+missing] = c.Slope, c.Offset
	}
	return all
}

var errBackwards = errors.New("a slope below 0 makes the likeliest answers the least sure")

// calibrate reads the argument into a model.
func (m *model) calibrate(given map[string]float64) error {
	m.Calibration = uncalibrated
	for _, name := range slices.Sorted(maps.Keys(given)) {
		what, missing, some := strings.Cut(name, without)
		c := m.Calibration
		if some {
			of, ok := m.Without[missing]
			if c = of; !ok {
				c = uncalibrated
			}
		}
		switch value := given[name]; {
		case what == "slope" && value >= 0:
			c.Slope = value
		case what == "slope":
			return &sdk.ArgumentError{Argument: "calibration", Err: errBackwards}
		case what == "offset":
			c.Offset = value
		default:
			return &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("there is no %q; give slope and offset, and slope%sNAME and offset%[2]sNAME where voters are missing", name, without)}
		}
		if !some {
			m.Calibration = c
			continue
		}
		if m.Without == nil {
			m.Without = map[string]calibration{}
		}
		m.Without[missing] = c
	}
	return nil
}

// absence is a set of voters, one bit each, with the calibration where they are missing.
type absence struct {
	voters uint64
	calibration
}

// mostVoters is how many voters have calibrations for sets of them.
const mostVoters = 64

// prepare finds the voters that count, and numbers those of the absences.
func (m *model) prepare() *model {
	m.voters = nil
	for _, name := range slices.Sorted(maps.Keys(m.Weights)) {
		if m.Weights[name] > 0 {
			m.voters = append(m.voters, name)
		}
	}
	m.absences = []absence{{0, m.Calibration}}
	for _, names := range slices.Sorted(maps.Keys(m.Without)) {
		a := absence{calibration: m.Without[names]}
		for name := range strings.SplitSeq(names, and) {
			if i := slices.Index(m.voters, name); i >= 0 && i < mostVoters {
				a.voters |= 1 << i
			}
		}
		m.absences = append(m.absences, a)
	}
	return m
}

// calibrated returns the calibration of an item on which some voters voted.
func (m *model) calibrated(voted func(string) bool) calibration {
	if len(m.absences) == 1 {
		return m.Calibration
	}
	missing := uint64(0)
	for i, name := range m.voters[:min(len(m.voters), mostVoters)] {
		if !voted(name) {
			missing |= 1 << i
		}
	}
	return slices.MinFunc(m.absences, func(a, b absence) int {
		return bits.OnesCount64(a.voters^missing) - bits.OnesCount64(b.voters^missing)
	}).calibration
}

const (
	folds  = 5
	few    = 20 // rows that are enough for a calibration
	smooth = 3. // how many rows' worth a calibration stays with that of the whole
)

// trial is what an election decides on rows from whose votes it has not learnt.
type trial []point

// point is a decision.
type point struct {
	odds    float64 // that it is right: its log-odds by the election
	right   bool
	missing uint64 // the voters without a vote, one bit each
}

// calibrate fits the calibrations of a model to decisions with weights that were fitted without
// the row (cross-validation), and returns those decisions; nil: there are too few rows.
func (p *problem) calibrate(ctx context.Context, m *model, voters []string, weights []float64) (trial, error) {
	if len(p.rows) < few {
		return nil, nil
	}
	folded := make([][]float64, folds)
	for fold := range folded {
		folded[fold] = slices.Clone(weights) // close to what they will be
		if err := p.minimise(ctx, folded[fold], func(i int) bool { return i%folds != fold }); err != nil {
			return nil, err
		}
	}
	counted := uint64(0) // voters with a weight
	for i, w := range weights[:min(len(weights), mostVoters)] {
		if rounded(w) > 0 {
			counted |= 1 << i
		}
	}
	decide := func(missing uint64) trial {
		t := make(trial, len(p.rows))
		for i := range t {
			t[i] = p.decide(i, folded[i%folds], missing)
			t[i].missing &= counted
		}
		return t
	}
	asCast := decide(0)
	whole := asCast.without(0).calibrated(asCast.calibrated(uncalibrated, 1), smooth)
	m.Calibration, m.Without = whole, map[string]calibration{}
	for _, missing := range p.absences(asCast, counted) {
		t := decide(missing).without(missing)
		if len(t) < few {
			continue
		}
		var names []string
		for i, name := range voters {
			if missing>>i&1 == 1 {
				names = append(names, name)
			}
		}
		m.Without[strings.Join(names, and)] = t.calibrated(whole, smooth)
	}
	return asCast, nil
}

// absences are the sets of voters that may be missing.
func (p *problem) absences(asCast trial, counted uint64) []uint64 {
	shares := uint64(0)
	for i, kind := range p.shares[:min(len(p.shares), mostVoters)] {
		if kind {
			shares |= 1 << i
		}
	}
	sets := []uint64{counted & shares, counted &^ shares}
	for i := range mostVoters {
		sets = append(sets, counted&(1<<i))
	}
	for _, d := range asCast {
		sets = append(sets, d.missing)
	}
	slices.Sort(sets)
	return slices.DeleteFunc(slices.Compact(sets), func(set uint64) bool { return set == 0 || set == counted })
}

// without returns the decisions that exactly these voters had no part in.
func (t trial) without(missing uint64) trial {
	var some trial
	for _, d := range t {
		if d.missing == missing {
			some = append(some, d)
		}
	}
	return some
}

// decide holds an election on a row without some of its voters.
func (p *problem) decide(i int, weights []float64, missing uint64) point {
	r, d := &p.rows[i], point{missing: math.MaxUint64}
	v := r.votes
	p.some = p.some[:0]
	for _, x := range v.all {
		if x.voter < mostVoters {
			if missing>>x.voter&1 == 1 {
				continue
			}
			d.missing &^= 1 << x.voter
		}
		p.some = append(p.some, x)
	}
	v.all = p.some
	p.scores = v.score(p.scores, weights)
	best := v.winner(p.scores)
	if best < 0 {
		d.odds = math.Inf(-1)
		return d
	}
	v.softmax(p.scores, p.labels)
	d.odds, d.right = logOdds(p.scores[best]), best == r.truth
	return d
}

// calibrated is fitted to decisions by Newton's method, with a penalty of the squared distance
// from another calibration: as much as so many rows.
func (t trial) calibrated(from calibration, rows float64) calibration {
	c := from
	for range steps {
		g, h := [2]float64{rows * (c.Slope - from.Slope), rows * (c.Offset - from.Offset)}, [3]float64{rows, 0, rows}
		for _, d := range t {
			if math.IsInf(d.odds, 0) {
				continue // nothing was answered
			}
			p := sigmoid(c.Slope*d.odds + c.Offset)
			error, v := p, p*(1-p)
			if d.right {
				error--
			}
			g[0], g[1] = g[0]+error*d.odds, g[1]+error
			h[0], h[1], h[2] = h[0]+v*d.odds*d.odds, h[1]+v*d.odds, h[2]+v
		}
		det := h[0]*h[2] - h[1]*h[1]
		by := [2]float64{(h[2]*g[0] - h[1]*g[1]) / det, (h[0]*g[1] - h[1]*g[0]) / det}
		size := min(1, 1/max(math.Abs(by[0]), math.Abs(by[1]))) // far from the end, Newton's steps are too long
		c.Slope, c.Offset = max(c.Slope-size*by[0], 0), c.Offset-size*by[1]
		if math.Abs(by[0])+math.Abs(by[1]) < 1e-9 {
			break
		}
	}
	return calibration{rounded(c.Slope), rounded(c.Offset)}
}
