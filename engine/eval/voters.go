package eval

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
)

// Voter is what a voter's heaviest accepted answer alone would have reached, and what
// the voter is worth to the election, of the scored items that it was asked about.
type Voter struct {
	Name             string            `json:"name"`
	Asked            int               `json:"asked"` // scored items that it was asked about
	Accuracy         float64           `json:"accuracy"`
	AccuracyInterval interval.Interval `json:"accuracy_interval"`
	Accepted         float64           `json:"accepted"` // share of these items with an accepted answer of its
	// Weight is that of the voter in the election; nil: the election has none for it. Leads: its answer
	// stands wherever it has one.
	Weight *float64 `json:"weight,omitempty"`
	Leads  bool     `json:"leads,omitempty"`
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
	asked, elected  int // items; of these: right by the election
	answered, right int // items with an accepted answer
	both            int // of these: right by the voter and by the election
	given, accepted int // answers
}

// ask counts an item that the voter was asked about.
func (v *voter) ask(elected bool) {
	if v.asked++; elected {
		v.elected++
	}
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

// report sums up a voter.
func (c *Counter) report(name string) Voter {
	v := *c.byVoter[name]
	if c.always[name] {
		v.asked, v.elected = c.scored, c.right
	}
	return Voter{
		Name: name, Asked: v.asked, Accuracy: share(v.right, v.asked), AccuracyInterval: interval.Wilson(v.right, v.asked),
		Accepted: share(v.answered, v.asked), Answers: v.given, Acceptable: share(v.accepted, v.given),
		Alone: interval.Paired{Items: v.asked, Lost: v.elected - v.both, Gained: v.right - v.both},
	}
}

// asked names the voters that have left something of an item: answers, or why there are none.
func asked(r outcome.Result) (all []string) {
	add := func(voter string) {
		if !slices.Contains(all, voter) {
			all = append(all, voter)
		}
	}
	for i := range r.Votes {
		add(r.Votes[i].Voter)
	}
	for _, f := range append(slices.Clip(r.Skipped), r.Failure) {
		if f != nil {
			stage, _, _ := strings.Cut(f.Stage, ",") // before its fallback
			if voter, ok := strings.CutPrefix(stage, "sample."); ok {
				add(voter)
			}
		}
	}
	return all
}

// Weigh adds the weights of an election to the voters.
func (r *Report) Weigh(w pipeline.Weights) {
	for i := range r.Voters {
		v := &r.Voters[i]
		if weight, ok := w.Weights[v.Name]; ok {
			v.Weight = &weight
		}
		v.Leads = v.Name == w.Leader
	}
}

// Additions counts what each voter adds to an election.
type Additions struct {
	counter *Counter
	pairs   map[string]*interval.Paired
}

// NewAdditions returns an empty counter, for which another one knows what is right and who was asked.
func NewAdditions(c *Counter) *Additions {
	return &Additions{c, map[string]*interval.Paired{}}
}

// Add counts an item as it was answered, and as it was without a voter, if that was asked.
func (a *Additions) Add(voter string, answered, without outcome.Result) {
	if !a.counter.always[voter] && !slices.Contains(asked(answered), voter) {
		return
	}
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
	}
	return c.byVoter[name]
}

// votes is a voter that has given an answer.
func (c *Counter) votes(name string) *voter {
	if of := c.voter(name); of.given == 0 {
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
