package eval

import (
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/pipeline"
)

// Counter gathers results.
type Counter struct {
	scored, right int
	agreement     float64
	answered      int // by the stages
	decided       int // by people, and labelled
	latencies     []time.Duration
	labels        map[string]*tally
	voters        []string // in order of appearance, which is file order
	byVoter       map[string]*voter
	always        map[string]bool // voters that are asked about every item
	known         map[string]bool // the knowledge's labels; empty: none are known
	in, out       scope
	flags         Flags
	confused      map[Confused]int // by pair, whose Items are 0
}

type tally struct{ support, answered, right int }

type scope struct{ items, right, unanswered int }

// NewCounter returns an empty counter. The labels are those of the knowledge;
// without any, everything is in scope.
func NewCounter(labels ...string) *Counter {
	c := &Counter{labels: map[string]*tally{}, byVoter: map[string]*voter{}, known: map[string]bool{}, confused: map[Confused]int{}}
	for _, l := range labels {
		c.known[l] = true
	}
	return c
}

// Of lets the counter know which voters the pipeline asks about every item: those without a rule that
// call no service. Of any other one, and of all where the pipeline is nil, an item counts as asked where
// the voter has left something.
func (c *Counter) Of(p *pipeline.Pipeline) *Counter {
	c.always = map[string]bool{}
	if p != nil {
		for _, s := range p.Stages {
			c.always[s.Name] = c.always[s.Name] || s.Block == "sample" && s.When == nil && !s.Info.Network
		}
	}
	return c
}

// Add counts one result.
func (c *Counter) Add(r outcome.Result) {
	if r.Failure == nil || r.Latency > 0 {
		c.latencies = append(c.latencies, r.Latency)
	}
	if r.Failure == nil && r.Answer != "" && r.Decided == nil {
		c.answered++
		c.agreement += r.Agreement
	}
	for _, v := range r.Votes {
		of := c.votes(v.Voter)
		of.given++
		if v.Accepted {
			of.accepted++
		}
	}
	for _, rest := range r.Rest {
		of := c.votes(rest.Voter)
		of.given += rest.Votes
		of.accepted += rest.Accepted
	}
	if !Scored(r) {
		if labelled(r) {
			c.decided++
		}
		return
	}
	c.scored++
	outside := c.Outside(r)
	right := c.score(r, outside)
	c.flag(r, right)
	for _, name := range asked(r) {
		c.voter(name).ask(right)
	}
	for _, top := range topAnswers(r.Votes) {
		alone := top.Answer == r.Expected || outside && top.Answer == ""
		c.voter(top.Voter).score(alone, right)
	}
}

// Scored reports whether an item has a label to compare its answer with, and whether that
// measures anything: what people have decided does not.
func Scored(r outcome.Result) bool { return labelled(r) && r.Decided == nil }

func labelled(r outcome.Result) bool { return r.Expected != "" && !r.RetrievalOnly && !r.FreeText }

// Outside reports whether the expected label is one that the knowledge does
// not have.
func (c *Counter) Outside(r outcome.Result) bool {
	return len(c.known) > 0 && r.Expected != "" && !c.known[r.Expected]
}

// Right reports whether an item with an expected label got the right answer.
func (c *Counter) Right(r outcome.Result) bool {
	return r.Failure == nil && (r.Answer == r.Expected || r.Answer == "" && c.Outside(r))
}

// score counts the answer to an item with an expected label, and says whether it is
// right.
func (c *Counter) score(r outcome.Result, outside bool) (right bool) {
	s := &c.in
	if outside {
		s = &c.out
	} else {
		c.label(r.Expected).support++
	}
	s.items++
	if right = c.Right(r); right {
		s.right++
		c.right++
	}
	switch {
	case r.Failure != nil:
	case r.Answer == "":
		s.unanswered++
	default:
		c.label(r.Answer).answered++
		if right {
			c.label(r.Answer).right++
		}
	}
	if !right && r.Failure == nil {
		c.confused[Confused{Expected: r.Expected, Answered: r.Answer}]++
	}
	return right
}

func (c *Counter) flag(r outcome.Result, right bool) {
	if !right {
		c.flags.Errors++
	}
	switch {
	case !r.Flagged:
	case right:
		c.flags.Right++
	default:
		c.flags.Caught++
	}
}

func (c *Counter) label(name string) *tally {
	if c.labels[name] == nil {
		c.labels[name] = &tally{}
	}
	return c.labels[name]
}
