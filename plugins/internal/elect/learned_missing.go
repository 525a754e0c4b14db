package elect

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// This file handles missing voters. A voter is missing if a cascade did not ask it, a service failed, or a budget was
// spent. The weights that suit all voters together are then too low for the remaining ones, and so is the confidence.
// So some sets of missing voters have weights and a calibration of their own, smoothed towards those of the whole.
// These sets are: sets that are missing on a twentieth of the rows, each single voter, all voters with distributions,
// and all voters with single answers. Any other set uses the numbers of the set that differs from it by the fewest
// voters.
//
// A calibration turns the probability of an answer into a confidence (Platt, "Probabilistic outputs for support
// vector machines and comparisons to regularized likelihood methods", 1999).

// calibration turns log-odds into a confidence: sigmoid(slope * log-odds + offset).
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

// surest bounds log-odds: no number of rows distinguishes a probability closer to 1 from 1.
const surest = 12

func logOdds(probability float64) float64 {
	return max(-surest, min(surest, math.Log(probability/(1-probability))))
}

// present holds what was learned about the voters that are present.
type present struct {
	Weights     map[string]float64 `json:"weights"`
	Calibration calibration        `json:"calibration"`
}

// The argument calibration has names such as "slope", "offset without llm" and "weight of linear
// without llm and knn".
const weightOf, without, and, raiseName, mostName = "weight of ", " without ", " and ", "raise", "most of "

// argument returns the argument calibration: everything but the weights of the whole.
func (m *model) argument() map[string]float64 {
	all := map[string]float64{"slope": m.Calibration.Slope, "offset": m.Calibration.Offset}
	for i, c := range m.Levels {
		level := levelOf + strconv.Itoa(i+1)
		all["slope"+level], all["offset"+level] = c.Slope, c.Offset
	}
	if m.Raise > 0 {
		all[raiseName] = m.Raise
	}
	for label, most := range m.Most {
		all[mostName+label] = most
	}
	for missing, p := range m.Without {
		all["slope"+without+missing], all["offset"+without+missing] = p.Calibration.Slope, p.Calibration.Offset
		for voter, w := range p.Weights {
			all[weightOf+voter+without+missing] = w
		}
	}
	return all
}

// calibrate reads the argument into a model.
func (m *model) calibrate(given map[string]float64) error {
	m.Calibration, m.Without = uncalibrated, map[string]present{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if label, ok := strings.CutPrefix(name, mostName); ok {
			if m.Most == nil {
				m.Most = map[string]float64{}
			}
			m.Most[label] = given[name]
			continue
		}
		what, missing, some := strings.Cut(name, without)
		p, known := m.Without[missing]
		switch {
		case !some:
			p.Calibration = m.Calibration
		case !known:
			p = present{map[string]float64{}, uncalibrated}
		}
		voter, weighs := strings.CutPrefix(what, weightOf)
		switch value := given[name]; {
		case value < 0 && !strings.HasPrefix(what, "offset"):
			return &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("%s is below 0: only an offset may be", name)}
		case !some && m.setLevel(what, value):
		case what == "slope":
			p.Calibration.Slope = value
		case what == "offset":
			p.Calibration.Offset = value
		case name == raiseName:
			m.Raise = value
		case some && weighs:
			p.Weights[voter] = value
		default:
			return &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("there is no %q; give slope and offset or, where voters are missing, slope without NAME, offset without NAME and weight of VOTER without NAME", name)}
		}
		if some {
			m.Without[missing] = p
		} else {
			m.Calibration = p.Calibration
		}
	}
	return nil
}

// absence is a set of missing voters, one bit each, with what was learned about the others.
type absence struct {
	voters uint64
	present
}

// mostVoters is how many voters an absence can hold.
const mostVoters = 64

// prepare numbers the voters of the absences.
func (m *model) prepare() *model {
	if m.Sets != nil {
		m.Sets.prepare()
	}
	m.voters = slices.Sorted(maps.Keys(m.Weights))
	m.absences = []absence{{0, m.present}}
	for _, names := range slices.Sorted(maps.Keys(m.Without)) {
		a := absence{present: m.Without[names]}
		for name := range strings.SplitSeq(names, and) {
			if i := slices.Index(m.voters, name); i >= 0 && i < mostVoters {
				a.voters |= 1 << i
			}
		}
		m.absences = append(m.absences, a)
	}
	return m
}

// missing returns, one bit each, which voters have no accepted answer for the item that was read last.
func (r *reader) missing(voters []string) (all uint64) {
	for i, name := range voters[:min(len(voters), mostVoters)] {
		if at := slices.Index(r.voters, name); at < 0 || r.cast[at].samples == 0 {
			all |= 1 << i
		}
	}
	return all
}

// without returns what was learned about the other voters where the given ones are missing.
func (m *model) without(missing uint64) *present {
	nearest := &m.absences[0]
	for i := range m.absences {
		if a := &m.absences[i]; bits.OnesCount64(a.voters^missing) < bits.OnesCount64(nearest.voters^missing) {
			nearest = a
		}
	}
	return &nearest.present
}

const (
	folds    = 5
	handful  = 5    // least number of rows for estimates of unknown texts
	few      = 20   // enough rows for a calibration
	many     = 2000 // enough rows where voters are missing
	flattest = 0.05 // the least slope; it keeps the order of the probabilities, which shows unknown texts
	smooth   = 3.   // how many rows the prior of a calibration counts
)

// trial holds decisions on rows from whose votes the election has not learned.
type trial []point

// point is one decision.
type point struct {
	odds  float64 // the election's log-odds that the decision is right
	right bool
}

// learn returns weights fitted to the rows. The trial holds the decision on each row, with weights fitted without
// that row (cross-validation).
func (p *problem) learn(ctx context.Context) (weights []float64, t trial, err error) {
	weights = slices.Clone(p.prior)
	if err := p.minimise(ctx, weights, func(int) bool { return true }); err != nil {
		return weights, nil, err
	}
	if p.raise == 0 {
		p.raise = p.bearable(weights)
	}
	if len(p.rows) < handful {
		return weights, nil, nil
	}
	t = make(trial, len(p.rows))
	for fold := range folds {
		w := slices.Clone(weights) // close to the result
		if err := p.minimise(ctx, w, func(i int) bool { return i%folds != fold }); err != nil {
			return nil, nil, err
		}
		for i := fold; i < len(p.rows); i += folds {
			if t[i] = p.decide(i, w); p.form.Levels != "" && !math.IsInf(t[i].odds, 0) {
				p.descend(&p.rows[i])
			}
		}
	}
	return weights, t, nil
}

// decide elects on row i.
func (p *problem) decide(i int, weights []float64) point {
	r := &p.rows[i]
	p.scores = r.votes.score(p.scores, weights)
	for _, label := range r.alone {
		if p.scores[label] > 0 {
			p.scores[label] += p.raise
		}
	}
	best := r.votes.winner(p.scores)
	if best < 0 {
		return point{odds: math.Inf(-1)}
	}
	r.votes.softmax(p.scores, p.labels)
	return point{logOdds(unraised(p.scores[best], slices.Contains(r.alone, int32(best)), p.raise)), best == r.truth}
}

// known returns the weights of the voters that are not missing, by name.
func known(voters []string, weights []float64, missing uint64) map[string]float64 {
	all := map[string]float64{}
	for i, name := range voters {
		if missing>>min(i, mostVoters)&1 == 0 {
			all[name] = rounded(weights[i])
		}
	}
	return all
}

// learn fits a model to the rows, and to the same rows without some of their voters. The trial holds the decision on
// each row, with weights fitted without that row; nil: there are too few rows.
func (m *model) learn(ctx context.Context, p *problem, voters []string) (trial, error) {
	weights, t, err := p.learn(ctx)
	if err != nil {
		return nil, err
	}
	m.present, m.Raise = present{known(voters, weights, 0), uncalibrated}, p.raise
	if len(p.rows) < few {
		return t, nil
	}
	m.Calibration = t.calibrated(uncalibrated, 1)
	m.calibrateLevels(p.levels)
	whole := trial{} // rows without missing voters
	for i, r := range p.rows {
		if r.missing(len(voters)) == 0 {
			whole = append(whole, t[i])
		}
	}
	m.Calibration = whole.calibrated(m.Calibration, smooth)
	m.Without = map[string]present{}
	for missing, rows := range p.without() {
		if missing == 0 || len(rows) < max(few, len(p.rows)/20) {
			continue
		}
		q := newProblem(rows, p.labels, len(voters))
		q.prior, q.raise = weights, p.raise
		w, some, err := q.learn(ctx)
		if err != nil {
			return nil, err
		}
		var names []string
		for i, name := range voters {
			if missing>>i&1 == 1 {
				names = append(names, name)
			}
		}
		m.Without[strings.Join(names, and)] = present{known(voters, w, missing), some.calibrated(m.Calibration, smooth)}
	}
	return t, nil
}

// missing returns, one bit each, which of n voters have no vote on the row.
func (r *row) missing(n int) uint64 {
	all := uint64(1)<<min(n, mostVoters) - 1
	for _, x := range r.votes.all {
		all &^= 1 << x.voter
	}
	return all
}

// without returns rows by their missing voters. From each row it removes nobody, all voters of a kind, and each
// single voter.
func (p *problem) without() map[uint64][]row {
	n := len(p.shares)
	if n > mostVoters {
		return nil
	}
	kinds, absent := [2]uint64{}, []uint64{0}
	for i, shares := range p.shares {
		absent = append(absent, 1<<i)
		if shares {
			kinds[0] |= 1 << i
		} else {
			kinds[1] |= 1 << i
		}
	}
	absent = append(absent, kinds[:]...)
	all := map[uint64][]row{}
	for i := 0; i < len(p.rows); i += (len(p.rows) + many - 1) / many {
		r := p.rows[i]
		already, known := r.missing(n), []uint64(nil)
		for _, a := range absent {
			missing := already | a
			if missing == uint64(1)<<n-1 || slices.Contains(known, missing) {
				continue
			}
			known = append(known, missing)
			some := r
			some.votes.all = slices.DeleteFunc(slices.Clone(r.votes.all), func(x vote) bool { return missing>>x.voter&1 == 1 })
			all[missing] = append(all[missing], some)
		}
	}
	return all
}

// calibrated fits a calibration to the decisions by Newton's method. The calibration from is the prior; it counts as
// much as the given number of rows.
func (t trial) calibrated(from calibration, rows float64) calibration {
	c := from
	for range steps {
		g, h := [2]float64{rows * (c.Slope - from.Slope), rows * (c.Offset - from.Offset)}, [3]float64{rows, 0, rows}
		for _, d := range t {
			if math.IsInf(d.odds, 0) {
				continue // without an answer
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
		size := min(1, 1/max(math.Abs(by[0]), math.Abs(by[1]))) // far from the minimum, Newton's steps are too long
		if c.Slope == flattest && by[0] > 0 {
			by = [2]float64{0, g[1] / h[2]}
		}
		c.Slope, c.Offset = max(c.Slope-size*by[0], flattest), c.Offset-size*by[1]
		if math.Abs(by[0])+math.Abs(by[1]) < 1e-9 {
			break
		}
	}
	return calibration{rounded(c.Slope), rounded(c.Offset)}
}
