package eval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Parts are the parts of a pipeline that it can do without.
var Parts = []string{"enrich", "dense", "lexical", "rerank"}

// PartError says why a part cannot be left out.
type PartError struct{ Part, Why string }

func (e *PartError) Error() string { return fmt.Sprintf("leave out %s: %s", e.Part, e.Why) }

// withoutPart returns overrides that leave a part out; nil if the pipeline does not have it.
func withoutPart(p *pipeline.Pipeline, part string) []pipeline.Override {
	switch part {
	case "enrich":
		return unenriched(p)
	case "dense":
		return oneLeg(p, sdk.ModeLexical, part)
	case "lexical":
		return oneLeg(p, sdk.ModeDense, part)
	}
	var set []pipeline.Override
	for _, s := range p.Stages {
		if s.Enabled && s.Block == part {
			set = append(set, pipeline.Override{Target: part + "." + s.Name + ".enabled", Value: "false"})
		}
	}
	return set
}

// unenriched leaves out the enrich blocks of all searched knowledge. That makes another generation,
// built beside the enriched one.
func unenriched(p *pipeline.Pipeline) []pipeline.Override {
	var set []pipeline.Override
	for _, k := range p.Knowledge() {
		for _, s := range k.Enrichers() {
			if o := (pipeline.Override{Target: "enrich." + s.Name + ".enabled", Value: "false"}); !slices.Contains(set, o) {
				set = append(set, o)
			}
		}
	}
	return set
}

// oneLeg sets all hybrid searches to one mode. It also leaves out a keep rule that reads a score of
// the missing mode, or the fused score, because these scores change: the rule would drop the wrong
// candidates. A reranker's score does not change.
func oneLeg(p *pipeline.Pipeline, mode sdk.Mode, without string) []pipeline.Override {
	var set []pipeline.Override
	for _, s := range p.Stages {
		stage, drop := s.Block+"."+s.Name, false
		switch {
		case !s.Enabled:
		case s.Retrieve != nil && s.Retrieve.Ranking.Mode == sdk.ModeHybrid:
			set = append(set, pipeline.Override{Target: stage + ".mode", Value: string(mode)})
			drop = s.Keep.Reads(without) || s.Keep.Reads("score")
		case s.Kind == sdk.KindRerank && len(set) > 0:
			drop = s.Keep.Reads(without)
		}
		if drop {
			set = append(set, pipeline.Override{Target: stage + ".keep", Value: "null"})
		}
	}
	return set
}

// without returns the pipeline whole, and without each of the named parts.
func without(p *pipeline.Pipeline, names []string) ([]Variant, error) {
	var has []string
	for _, part := range Parts {
		if len(withoutPart(p, part)) > 0 {
			has = append(has, part)
		}
	}
	all := []Variant{{Values: []string{"nothing"}, Name: "whole"}}
	for _, name := range names {
		v := Variant{Values: []string{name}, Name: "without " + name}
		switch {
		case !slices.Contains(Parts, name):
			return nil, &PartError{name, fmt.Sprintf("there is no such part; parts are %s.%s", strings.Join(Parts, ", "), rule.DidYouMean(name, has))}
		case !slices.Contains(has, name):
			return nil, &PartError{name, fmt.Sprintf("pipeline %q does not have this part turned on, or nothing else; it can do without: %s", p.Name, cmp.Or(strings.Join(has, ", "), "nothing"))}
		}
		v.Set = withoutPart(p, name)
		for _, o := range v.Set {
			if strings.HasSuffix(o.Target, ".keep") {
				v.Name += fmt.Sprintf("\n%s reads a score that is not there then, or is another one: it is left out too", o.Target)
			}
		}
		all = append(all, v)
	}
	return all, nil
}

// Options say what to measure: the pipeline as it is, or its variants by Sweep or Ablate.
type Options struct {
	Cuts   []int    // lengths at which recall is measured; nil: Cuts
	Sweep  []Target // every combination of their values
	Ablate []string // the whole pipeline, and without each of these Parts
	Errors int      // most mistakes in Report.Errors
	// Results gets the results, in the order of the input; nil: not wanted. It needs a single
	// pipeline, without Sweep and Ablate.
	Results func([]outcome.Result) error
}

// Target is an argument with values to try in turn.
type Target struct {
	Name   string // STAGE.ARGUMENT, BLOCK.STAGE.ARGUMENT or var.NAME, as in pipeline.Override
	Values []string
}

// Variant is a pipeline with some of its arguments set.
type Variant struct {
	Values []string // the values that distinguish the variant
	Name   string   // for people; empty: the pipeline as it is
	Set    []pipeline.Override
}

// Comparison holds the reports of variants.
type Comparison struct {
	Targets []string `json:"targets"`
	Rows    []Row    `json:"rows"`
}

// Row is the report of one variant.
type Row struct {
	Set    []string `json:"set"` // values, in the order of the targets
	Report Report   `json:"report"`
}

// Targets names the values of the variants; nil: the only variant has none.
func (o Options) Targets() []string {
	if len(o.Ablate) > 0 {
		return []string{"WITHOUT"}
	}
	var names []string
	for _, t := range o.Sweep {
		names = append(names, t.Name)
	}
	return names
}

// First sets every target to its first value, so that a file opens whose variables get values from
// Sweep alone.
func (o Options) First() []pipeline.Override {
	var set []pipeline.Override
	for _, t := range o.Sweep {
		set = append(set, pipeline.Override{Target: t.Name, Value: t.Values[0]})
	}
	return set
}

// Variants returns the variants of a pipeline to measure. The values of the last target change
// fastest. An error is a *PartError.
func (o Options) Variants(p *pipeline.Pipeline) ([]Variant, error) {
	if len(o.Ablate) > 0 {
		return without(p, o.Ablate)
	}
	all := []Variant{{}}
	for _, t := range o.Sweep {
		var longer []Variant
		for _, v := range all {
			for _, value := range t.Values {
				set := pipeline.Override{Target: t.Name, Value: value}
				longer = append(longer, Variant{
					Values: append(slices.Clip(v.Values), value), Set: append(slices.Clip(v.Set), set),
					Name: strings.TrimSpace(v.Name + " " + set.String()),
				})
			}
		}
		all = longer
	}
	return all, nil
}

// Voter measures a voter on the scored items that it was asked about: how accurate the voter's
// heaviest accepted answer is alone, and what the voter adds to the election.
type Voter struct {
	Name             string   `json:"name"`
	Asked            int      `json:"asked"` // scored items that it was asked about
	Accuracy         float64  `json:"accuracy"`
	AccuracyInterval Interval `json:"accuracy_interval"`
	Accepted         float64  `json:"accepted"` // share of those items with an accepted answer from this voter
	// Weight is the voter's weight in the election; nil: it has none. Leads means that the voter's
	// answer, where it has one, always wins.
	Weight *float64 `json:"weight,omitempty"`
	Leads  bool     `json:"leads,omitempty"`
	// Answers counts the voter's answers to all items; Acceptable is the accepted share. A voter
	// with a distribution gives an answer per label, a language model gives one per sample.
	Answers    int     `json:"answers"`
	Acceptable float64 `json:"acceptable"`
	Network    bool    `json:"network,omitempty"` // it calls a service, such as a language model
	// Alone compares the election with this voter alone: Gained counts the items that the voter has
	// right and the election wrong.
	Alone Paired `json:"alone"`
	// Adds compares the election without this voter with the real one: Gained counts the items that
	// are right only with this voter. Everything else stays as it was: the other votes, even if
	// they depend on this voter's votes, and learned weights. nil: no election was held without the
	// voter.
	Adds *Paired `json:"adds,omitempty"`
}

// voter counts the items and answers of one voter.
type voter struct {
	asked, elected  int // items; elected counts those of asked where the election is right
	answered, right int // items with an accepted answer
	both            int // of these: the voter and the election are right
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

// report computes the figures of a voter.
func (c *Counter) report(name string) Voter {
	v := *c.byVoter[name]
	if c.always[name] {
		v.asked, v.elected = c.scored, c.right
	}
	return Voter{
		Name: name, Asked: v.asked, Accuracy: share(v.right, v.asked), AccuracyInterval: Wilson(v.right, v.asked),
		Accepted: share(v.answered, v.asked), Answers: v.given, Acceptable: share(v.accepted, v.given),
		Alone: Paired{Items: v.asked, Lost: v.elected - v.both, Gained: v.right - v.both},
	}
}

// asked lists the voters that were asked about an item: those with an answer or a failure.
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
			stage, _, _ := strings.Cut(f.Stage, ",") // drop its fallback
			if voter, ok := strings.CutPrefix(stage, "sample."); ok {
				add(voter)
			}
		}
	}
	return all
}

// Weigh sets the weights of the voters in an election.
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
	pairs   map[string]*Paired
}

// NewAdditions returns an empty counter. c knows which answers are right and who was asked.
func NewAdditions(c *Counter) *Additions {
	return &Additions{c, map[string]*Paired{}}
}

// Add compares an item's real result with its result without a voter, if the voter was asked.
func (a *Additions) Add(voter string, answered, without outcome.Result) {
	if !a.counter.always[voter] && !slices.Contains(asked(answered), voter) {
		return
	}
	if a.pairs[voter] == nil {
		a.pairs[voter] = &Paired{}
	}
	a.pairs[voter].Add(a.counter.Right(without), a.counter.Right(answered))
}

// Report sets Adds of the voters of a report.
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

// votes returns the counter of a voter that gave an answer.
func (c *Counter) votes(name string) *voter {
	if of := c.voter(name); of.given == 0 {
		c.voters = append(c.voters, name)
	}
	return c.byVoter[name]
}

// TopAnswers returns each voter's heaviest accepted answer (the first, if several are equal), in the
// order of the voters. Where answers are sets, the answer has all labels with at least half the
// weight of the heaviest label.
func TopAnswers(f sdk.LabelForm, votes []result.Vote) []result.Vote {
	type answer struct{ voter, label string }
	place := make(map[answer]int, len(votes))  // in sums
	sums := make([]result.Vote, 0, len(votes)) // one per voter and answer
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
	var tops []result.Vote
	for _, s := range sums {
		i := slices.IndexFunc(tops, func(t result.Vote) bool { return t.Voter == s.Voter })
		switch {
		case i < 0:
			tops = append(tops, s)
		case s.Weight > tops[i].Weight:
			tops[i] = s
		}
	}
	for i, top := range tops {
		if !f.Many {
			continue
		}
		labels := []string{}
		for _, s := range sums {
			if top.Answer != "" && s.Voter == top.Voter && s.Answer != "" && 2*s.Weight >= top.Weight {
				labels = append(labels, s.Answer)
			}
		}
		tops[i].Answer = sdk.JoinLabels(labels)
	}
	return tops
}
