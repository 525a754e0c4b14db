package eval

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/outcome"
)

// Report is what an evaluation found. Shares are between 0 and 1.
type Report struct {
	Items     int `json:"items"`
	Scored    int `json:"scored"` // items with an expected label; 0: no election is held
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"` // no acceptable answer
	Flagged   int `json:"flagged"`

	// Retrieval is nil where no item has gold passages.
	Retrieval *Retrieval `json:"retrieval,omitempty"`

	// Accuracy is the share of the scored items with the right answer. Out of
	// scope, none is right.
	Accuracy float64 `json:"accuracy"`
	Scope    *Scope  `json:"scope,omitempty"` // nil: every expected label is one of the knowledge's
	// MacroF1 is the mean F1 over all labels that were expected or answered,
	// those out of scope aside.
	MacroF1   float64 `json:"macro_f1"`
	Agreement float64 `json:"agreement"` // mean over the items with an answer

	ItemsPerSecond float64 `json:"items_per_second"`
	P50            float64 `json:"latency_p50_ms"`
	P99            float64 `json:"latency_p99_ms"`

	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`
	// Asked is how many items went to voters over the network, each counted.
	Asked int `json:"asked,omitempty"`
	// Cost is what the answers cost when they were made, by the file's prices;
	// those from a cache cost nothing again.
	Cost float64 `json:"cost,omitempty"`

	Voters []Voter     `json:"voters"`
	Labels []Label     `json:"labels"`
	Stages []StageTime `json:"stages"`
}

// Scope separates the items whose expected label the knowledge does not
// have: they are out of scope, and the right answer to them is none.
type Scope struct {
	In       int     `json:"in"`
	Out      int     `json:"out"`
	Accuracy float64 `json:"in_accuracy"` // of the items in scope
	// Unanswered is the share of the items in scope that were left without an
	// answer. A failure is not counted as one.
	Unanswered float64 `json:"in_unanswered"`
	// Recall is the share of the items out of scope that were left without.
	Recall float64 `json:"out_recall"`
}

// Voter is what a voter's heaviest accepted answer alone would have reached.
type Voter struct {
	Name     string  `json:"name"`
	Accuracy float64 `json:"accuracy"`
	Accepted float64 `json:"accepted"` // share of the scored items with an accepted answer of its
	// Answers is how many answers it gave, to scored items or not; Acceptable is
	// the share of them that were accepted. A distribution has an answer per
	// label, a model one per sample.
	Answers    int     `json:"answers"`
	Acceptable float64 `json:"acceptable"`
	Network    bool    `json:"network,omitempty"` // it asks a service, such as a language model
}

// Label is a row of the per-label table.
type Label struct {
	Label     string  `json:"label"`
	Support   int     `json:"support"` // items that should get it
	Answered  int     `json:"answered"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // of its calls, which overlap
}

// Counter gathers results.
type Counter struct {
	scored, right int
	agreement     float64
	decided       int
	latencies     []time.Duration
	labels        map[string]*tally
	voters        []string // in order of appearance, which is file order
	byVoter       map[string]*voter
	known         map[string]bool // the knowledge's labels; empty: none are known
	in, out       scope
}

type tally struct{ support, answered, right int }

// voter counts items, and answers.
type voter struct {
	tally
	given, accepted int
}

type scope struct{ items, right, unanswered int }

// NewCounter returns an empty counter. The labels are those of the knowledge;
// without any, everything is in scope.
func NewCounter(labels ...string) *Counter {
	c := &Counter{labels: map[string]*tally{}, byVoter: map[string]*voter{}, known: map[string]bool{}}
	for _, l := range labels {
		c.known[l] = true
	}
	return c
}

// Add counts one result.
func (c *Counter) Add(r outcome.Result) {
	if r.Failure == nil || r.Latency > 0 {
		c.latencies = append(c.latencies, r.Latency)
	}
	if r.Failure == nil && r.Answer != "" {
		c.decided++
		c.agreement += r.Agreement
	}
	for _, v := range r.Votes {
		of := c.voter(v.Voter)
		of.given++
		if v.Accepted {
			of.accepted++
		}
	}
	if r.Expected == "" || r.RetrievalOnly || r.FreeText {
		return
	}
	c.scored++
	outside := c.Outside(r)
	c.score(r, outside)
	for _, top := range topAnswers(r.Votes) {
		of := c.voter(top.Voter)
		of.answered++
		if top.Answer == r.Expected || outside && top.Answer == "" {
			of.right++
		}
	}
}

// Outside reports whether the expected label is one that the knowledge does
// not have.
func (c *Counter) Outside(r outcome.Result) bool {
	return len(c.known) > 0 && r.Expected != "" && !c.known[r.Expected]
}

// Right reports whether an item with an expected label got the right answer.
func (c *Counter) Right(r outcome.Result) bool {
	return r.Failure == nil && (r.Answer == r.Expected || r.Answer == "" && c.Outside(r))
}

// score counts the answer to an item with an expected label.
func (c *Counter) score(r outcome.Result, outside bool) {
	s := &c.in
	if outside {
		s = &c.out
	} else {
		c.label(r.Expected).support++
	}
	s.items++
	right := c.Right(r)
	if right {
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
}

func (c *Counter) voter(name string) *voter {
	if c.byVoter[name] == nil {
		c.byVoter[name] = &voter{}
		c.voters = append(c.voters, name)
	}
	return c.byVoter[name]
}

func (c *Counter) label(name string) *tally {
	if c.labels[name] == nil {
		c.labels[name] = &tally{}
	}
	return c.labels[name]
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

// Report sums up what was counted.
func (c *Counter) Report(t outcome.Totals) Report {
	r := Report{
		Items: t.Items, Scored: c.scored, Failed: t.Failed, Undecided: t.Undecided, Flagged: t.Flagged,
		Accuracy: share(c.right, c.scored), InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
	}
	if c.out.items > 0 {
		r.Scope = &Scope{
			In: c.in.items, Out: c.out.items, Accuracy: share(c.in.right, c.in.items),
			Unanswered: share(c.in.unanswered, c.in.items), Recall: share(c.out.right, c.out.items),
		}
	}
	if c.decided > 0 {
		r.Agreement = c.agreement / float64(c.decided)
	}
	if t.Elapsed > 0 {
		r.ItemsPerSecond = float64(t.Items) / t.Elapsed.Seconds()
	}
	slices.Sort(c.latencies)
	r.P50, r.P99 = quantile(c.latencies, .50), quantile(c.latencies, .99)
	for _, name := range slices.Sorted(maps.Keys(c.labels)) {
		of := c.labels[name]
		l := Label{
			Label: name, Support: of.support, Answered: of.answered,
			Precision: share(of.right, of.answered), Recall: share(of.right, of.support),
			F1: share(2*of.right, of.answered+of.support),
		}
		r.Labels = append(r.Labels, l)
		r.MacroF1 += l.F1 / float64(len(c.labels))
	}
	for _, name := range c.voters {
		of := c.byVoter[name]
		r.Voters = append(r.Voters, Voter{
			Name: name, Accuracy: share(of.right, c.scored), Accepted: share(of.answered, c.scored),
			Answers: of.given, Acceptable: share(of.accepted, of.given),
		})
	}
	for _, s := range t.Stages {
		r.Stages = append(r.Stages, StageTime{s.Stage, s.Rows, s.Busy.Seconds()})
	}
	return r
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// quantile returns the q-quantile of sorted durations in milliseconds, by the
// nearest-rank method.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i]) / float64(time.Millisecond)
}

// Worst returns the labels with the lowest F1, worst first.
func (r Report) Worst(n int) []Label {
	labels := slices.Clone(r.Labels)
	slices.SortStableFunc(labels, func(a, b Label) int { return cmp.Compare(a.F1, b.F1) })
	return labels[:min(n, len(labels))]
}
