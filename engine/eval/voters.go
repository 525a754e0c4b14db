package eval

import (
	"slices"

	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/outcome"
)

// Voter is what a voter's heaviest accepted answer alone would have reached, and what
// the voter is worth to the election.
type Voter struct {
	Name             string            `json:"name"`
	Accuracy         float64           `json:"accuracy"`
	AccuracyInterval interval.Interval `json:"accuracy_interval"`
	Accepted         float64           `json:"accepted"` // share of the scored items with an accepted answer of its
	// Answers is how many answers it gave, to scored items or not; Acceptable is
	// the share of them that were accepted. A distribution has an answer per
	// label, a model one per sample.
	Answers    int     `json:"answers"`
	Acceptable float64 `json:"acceptable"`
	Network    bool    `json:"network,omitempty"` // it asks a service, such as a language model
	// Alone compares the election with this voter alone: it gained the items that the
	// voter has right and the election has not.
	Alone interval.Paired `json:"alone"`
	// Adds compares the election held without this voter with the one that was held: it
	// gained the items that are right with the voter only. Everything else stays as it
	// was: the votes of the others, also where they depend on what it said, and the
	// weights of an election that learned them. nil: it was not held again.
	Adds *interval.Paired `json:"adds,omitempty"`
}

// voter counts items, and answers.
type voter struct {
	answered, right int // items with an accepted answer
	both            int // of these: right by the voter and by the election
	given, accepted int // answers
}

// score counts an item with an accepted answer of the voter.
func (v *voter) score(alone, elected bool) {
	v.answered++
	if alone {
		v.right++
	}
	if alone && elected {
		v.both++
	}
}

// report sums up a voter. The election has right of the scored items.
func (v *voter) report(name string, right, scored int) Voter {
	return Voter{
		Name: name, Accuracy: share(v.right, scored), AccuracyInterval: interval.Wilson(v.right, scored),
		Accepted: share(v.answered, scored), Answers: v.given, Acceptable: share(v.accepted, v.given),
		Alone: interval.Paired{Items: scored, Lost: right - v.both, Gained: v.right - v.both},
	}
}

// Additions counts what each voter adds to an election.
type Additions struct {
	counter *Counter // knows which answers are right
	pairs   map[string]*interval.Paired
}

// NewAdditions returns an empty counter. The labels are those of the knowledge.
func NewAdditions(labels ...string) *Additions {
	return &Additions{NewCounter(labels...), map[string]*interval.Paired{}}
}

// Add counts an item as it was answered, and as it was without a voter.
func (a *Additions) Add(voter string, answered, without outcome.Result) {
	if a.pairs[voter] == nil {
		a.pairs[voter] = &interval.Paired{}
	}
	a.pairs[voter].Add(a.counter.Right(without), a.counter.Right(answered))
}

// Report writes what was counted to the voters of a report.
func (a *Additions) Report(voters []Voter) {
	for i := range voters {
		voters[i].Adds = a.pairs[voters[i].Name]
	}
}

func (c *Counter) voter(name string) *voter {
	if c.byVoter[name] == nil {
		c.byVoter[name] = &voter{}
		c.voters = append(c.voters, name)
	}
	return c.byVoter[name]
}

// topAnswers returns each voter's heaviest accepted answer, of several equal
// ones the first, with the voters in their order.
func topAnswers(votes []outcome.Vote) []outcome.Vote {
	type answer struct{ voter, label string }
	place := make(map[answer]int, len(votes))   // in sums
	sums := make([]outcome.Vote, 0, len(votes)) // one per voter and answer
	for _, v := range votes {
		if !v.Accepted {
			continue
		}
		a := answer{v.Voter, v.Answer}
		i, ok := place[a]
		if !ok {
			place[a] = len(sums)
			sums = append(sums, v)
			continue
		}
		sums[i].Weight += v.Weight
	}
	var tops []outcome.Vote
	for _, s := range sums {
		i := slices.IndexFunc(tops, func(t outcome.Vote) bool { return t.Voter == s.Voter })
		switch {
		case i < 0:
			tops = append(tops, s)
		case s.Weight > tops[i].Weight:
			tops[i] = s
		}
	}
	return tops
}
