package eval

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/run"
)

// Report is what an evaluation found. Shares are between 0 and 1.
type Report struct {
	Items     int `json:"items"`
	Scored    int `json:"scored"` // items with an expected label
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"` // no acceptable answer
	Flagged   int `json:"flagged"`

	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean F1 over all labels that were expected or answered.
	MacroF1   float64 `json:"macro_f1"`
	Agreement float64 `json:"agreement"` // mean over the items with an answer

	ItemsPerSecond float64 `json:"items_per_second"`
	P50            float64 `json:"latency_p50_ms"`
	P99            float64 `json:"latency_p99_ms"`

	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`

	Voters []Voter     `json:"voters"`
	Labels []Label     `json:"labels"`
	Stages []StageTime `json:"stages"`
}

// Voter is what a voter's heaviest accepted answer alone would have reached.
type Voter struct {
	Name     string  `json:"name"`
	Accuracy float64 `json:"accuracy"`
	Accepted float64 `json:"accepted"` // share of the scored items with an accepted answer of its
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
	byVoter       map[string]*tally
}

type tally struct{ support, answered, right int }

// NewCounter returns an empty counter.
func NewCounter() *Counter {
	return &Counter{labels: map[string]*tally{}, byVoter: map[string]*tally{}}
}

// Add counts one result.
func (c *Counter) Add(r run.Result) {
	if r.Failure == nil || r.Latency > 0 {
		c.latencies = append(c.latencies, r.Latency)
	}
	if r.Failure == nil && r.Answer != "" {
		c.decided++
		c.agreement += r.Agreement
	}
	if r.Expected == "" {
		return
	}
	c.scored++
	c.label(r.Expected).support++
	if r.Failure == nil && r.Answer != "" {
		c.label(r.Answer).answered++
		if r.Answer == r.Expected {
			c.right++
			c.label(r.Answer).right++
		}
	}
	for _, top := range topAnswers(r.Votes) {
		t := c.byVoter[top.Voter]
		if t == nil {
			t = &tally{}
			c.byVoter[top.Voter] = t
			c.voters = append(c.voters, top.Voter)
		}
		t.answered++
		if top.Answer == r.Expected {
			t.right++
		}
	}
}

func (c *Counter) label(name string) *tally {
	if c.labels[name] == nil {
		c.labels[name] = &tally{}
	}
	return c.labels[name]
}

// topAnswers returns each voter's heaviest accepted answer, of several equal
// ones the first, with the voters in their order.
func topAnswers(votes []run.Vote) []run.Vote {
	type answer struct{ voter, label string }
	place := make(map[answer]int, len(votes)) // in sums
	sums := make([]run.Vote, 0, len(votes))   // one per voter and answer
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
	var tops []run.Vote
	for _, s := range sums {
		i := slices.IndexFunc(tops, func(t run.Vote) bool { return t.Voter == s.Voter })
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
func (c *Counter) Report(t run.Totals) Report {
	r := Report{
		Items: t.Items, Scored: c.scored, Failed: t.Failed, Undecided: t.Undecided, Flagged: t.Flagged,
		Accuracy: share(c.right, c.scored), InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
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
		r.Voters = append(r.Voters, Voter{name, share(of.right, c.scored), share(of.answered, c.scored)})
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
