package learned

import (
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// least is the share below which a label of a distribution is about as unlikely as one
// that the voter does not name.
const least = 0.001

// strength is what a share of a voter's ballot counts, from 0 for a label that it does
// not name to 1 for one that has all of it. Of a distribution that is the log share:
// twice the share is as much more at 1 % as at 40 %.
func strength(share float64, distribution bool) float64 {
	if distribution {
		return math.Log1p(share/least) / math.Log1p(1/least)
	}
	return share
}

// vote is a label in a voter's ballot. Both are positions in lists of a reader.
type vote struct {
	label, voter int32
	strength     float64
}

// votes are those on one item. Labels are numbered in the order in which they were first
// voted for, and stand in that order among a voter's votes.
type votes struct {
	all    []vote
	labels int // that have votes, with the empty one
	none   int // 1: the empty label is among them
}

// reader makes votes of samples. It numbers voters as they come, and keeps their numbers
// until it forgets them.
type reader struct {
	voters []string
	labels []string // of the votes that were read last
	index  map[string]int32
	cast   []cast // by voter
	all    []vote
	scores []float64 // by label
}

// cast is what a voter gave for an item.
type cast struct {
	samples      int // with an accepted answer
	distribution bool
	shares       []float64 // by label; those behind the last one are 0
}

// forget makes the next item the first one: what is made of it does not depend on others.
func (r *reader) forget() { r.voters, r.cast = r.voters[:0], r.cast[:0] }

// read returns the votes on an item, without those of voters with weight 0. They are valid
// until the next call.
func (r *reader) read(samples []sdk.Sample, weights map[string]float64) votes {
	r.labels, r.all = r.labels[:0], r.all[:0]
	if r.index == nil {
		r.index = map[string]int32{}
	}
	clear(r.index)
	for i := range r.cast {
		r.cast[i] = cast{shares: r.cast[i].shares[:0]}
	}
	for i := range samples {
		if w, ok := weights[samples[i].Voter]; !ok || w > 0 {
			r.add(&samples[i])
		}
	}
	var v votes
	for voter := range r.cast {
		c := &r.cast[voter]
		for label, sum := range c.shares {
			if sum > 0 {
				c.shares[label] = sum / float64(c.samples)
				r.all = append(r.all, vote{int32(label), int32(voter), strength(c.shares[label], c.distribution)})
			}
		}
	}
	v.all, v.labels = r.all, len(r.labels)
	if _, ok := r.index[""]; ok {
		v.none = 1
	}
	return v
}

// add adds a sample to its voter's ballot, where it has an accepted answer.
func (r *reader) add(s *sdk.Sample) {
	sum := 0.0
	for _, a := range s.Answers {
		if counts(a) {
			sum += a.Weight
		}
	}
	if sum == 0 {
		return
	}
	voter := slices.Index(r.voters, s.Voter)
	if voter < 0 {
		voter = len(r.voters)
		r.voters, r.cast = append(r.voters, s.Voter), slices.Grow(r.cast, 1)[:voter+1]
		r.cast[voter] = cast{shares: r.cast[voter].shares[:0]} // those that were forgotten leave their memory
	}
	c := &r.cast[voter]
	c.samples++
	c.distribution = c.distribution || len(s.Answers) > 1
	for _, a := range s.Answers {
		if !counts(a) {
			continue
		}
		label, ok := r.index[a.Label]
		if !ok {
			label = int32(len(r.labels))
			r.labels, r.index[a.Label] = append(r.labels, a.Label), label
		}
		for int(label) >= len(c.shares) {
			c.shares = append(c.shares, 0)
		}
		c.shares[label] += a.Weight / sum
	}
}

func counts(a sdk.Answer) bool { return a.Accepted && a.Weight > 0 && !math.IsInf(a.Weight, 0) }

// agreement is a label's share of the mean ballot.
func (r *reader) agreement(label int) float64 {
	sum, n := 0.0, 0
	for _, c := range r.cast {
		if c.samples == 0 {
			continue
		}
		n++
		if label < len(c.shares) {
			sum += c.shares[label]
		}
	}
	return min(sum/float64(n), 1)
}
