package eval

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Counter counts results.
type Counter struct {
	scored, right int
	agreement     float64
	answered      int // items that the stages answered
	decided       int // labelled items that people decided
	latencies     []time.Duration
	labels        map[string]*tally
	voters        []string // in order of appearance, which is file order
	byVoter       map[string]*voter
	always        map[string]bool // voters asked about every item
	known         map[string]bool // labels of the knowledge; empty: unknown
	in, out       scope
	flags         Flags
	confused      map[Confused]int // by pair, with Items 0
	sets          []scoredSet      // if answers are sets of labels
	nodes         nodes            // if labels are in a tree
}

type tally struct{ support, answered, right int }

type scope struct{ items, right, unanswered, caught int }

// NewCounter returns an empty counter. The labels are the knowledge's; without any, everything is
// in scope.
func NewCounter(labels ...string) *Counter {
	c := &Counter{labels: map[string]*tally{}, byVoter: map[string]*voter{}, known: map[string]bool{}, confused: map[Confused]int{}}
	for _, l := range labels {
		c.known[l] = true
	}
	return c
}

// Of determines which voters the pipeline asks about every item: voters without a rule that call no
// service. Any other voter counts as asked if it left answers or a failure. If the pipeline is nil,
// this applies to every voter.
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
	if !Scored(r) {
		if labelled(r) && r.Decided != nil {
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
	for _, top := range TopAnswers(r.Form, r.Votes) {
		alone := top.Answer == r.Expected || outside && unnamed(r.Form, top.Answer)
		c.voter(top.Voter).score(alone, right)
	}
}

// Scored reports whether an item has a label to compare the answer with. Persons' decisions and
// unusable rows measure nothing, so they are not scored.
func Scored(r outcome.Result) bool { return labelled(r) && r.Decided == nil && !r.Unusable() }

func labelled(r outcome.Result) bool { return r.Expected != "" && !r.RetrievalOnly && !r.FreeText }

// unnamed reports whether an answer names no label.
func unnamed(f sdk.LabelForm, answer string) bool { return len(f.Split(answer)) == 0 }

// Outside reports whether the expected label, or every label of an expected set, is missing from
// the knowledge.
func (c *Counter) Outside(r outcome.Result) bool {
	return len(c.known) > 0 && !unnamed(r.Form, r.Expected) && !slices.ContainsFunc(r.Form.Split(r.Expected), func(l string) bool { return c.known[l] })
}

// Right reports whether an item with an expected label got the right answer.
func (c *Counter) Right(r outcome.Result) bool {
	return r.Failure == nil && (r.Right() || unnamed(r.Form, r.Answer) && c.Outside(r))
}

// score counts the answer to an item with an expected label, and returns whether it is right.
func (c *Counter) score(r outcome.Result, outside bool) (right bool) {
	s := &c.in
	if outside {
		s = &c.out
	} else {
		for _, label := range r.Form.Split(r.Expected) {
			c.label(label).support++
		}
	}
	s.items++
	if right = c.Right(r); right {
		s.right++
		c.right++
	}
	unanswered := r.Answer == "" || outside && unnamed(r.Form, r.Answer)
	if r.Failure == nil && (r.Flagged || unanswered) {
		s.caught++
	}
	switch {
	case r.Failure != nil:
	case unanswered:
		s.unanswered++
	default:
		for _, label := range r.Form.Split(r.Answer) {
			c.label(label).answered++
			if right || r.Form.Many && slices.Contains(r.Form.Split(r.Expected), label) {
				c.label(label).right++
			}
		}
	}
	switch {
	case r.Form.Many:
		c.addSet(r)
	case r.Form.Levels != "":
		c.nodes.add(r)
	}
	if !right && r.Failure == nil {
		c.confuse(r)
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

// Report is the result of an evaluation. Shares are between 0 and 1.
type Report struct {
	Folds     int `json:"folds,omitempty"` // folds of the knowledge whose rows are the items; 0: the items are from an input
	Items     int `json:"items"`
	Scored    int `json:"scored"`            // items with an expected label; 0: there is no election
	Decided   int `json:"decided,omitempty"` // labelled items that people decided, and that are therefore not scored
	Failed    int `json:"failed"`
	Unusable  int `json:"unusable,omitempty"` // of Failed: their rows cannot be used, and are not scored
	Undecided int `json:"undecided"`          // items without an acceptable answer
	Flagged   int `json:"flagged"`

	// Retrieval is nil if no item has gold passages.
	Retrieval *Retrieval `json:"retrieval,omitempty"`

	// Accuracy is the share of the scored items with the right answer. An item out of scope is
	// right without an answer.
	Accuracy         float64  `json:"accuracy"`
	AccuracyInterval Interval `json:"accuracy_interval"`
	Scope            *Scope   `json:"scope,omitempty"` // nil: the knowledge has every expected label
	Sets             *Sets    `json:"sets,omitempty"`  // nil: an answer is one label
	Tree             *Tree    `json:"tree,omitempty"`  // nil: labels have no levels
	// MacroF1 is the mean F1 over all labels that were expected or answered, without out-of-scope
	// labels.
	MacroF1   float64 `json:"macro_f1"`
	Agreement float64 `json:"agreement"` // mean over the items with an answer

	Flags Flags `json:"flags"`
	// Promised is nil if no file of variables states a promise.
	Promised *Promised `json:"promised,omitempty"`
	// Calibration is nil without an election, and in a report by Work alone.
	Calibration *Calibration `json:"calibration,omitempty"`

	ItemsPerSecond float64 `json:"items_per_second"`
	P50            float64 `json:"latency_p50_ms"`
	P99            float64 `json:"latency_p99_ms"`

	InputTokens  uint64 `json:"input_tokens"`
	OutputTokens uint64 `json:"output_tokens"`
	// Asked counts the items that went to voters over the network, once for each voter.
	Asked int `json:"asked,omitempty"`
	// Cost is the cost of making the answers, by the file's prices, even if they came from the
	// cache this time.
	Cost float64 `json:"cost,omitempty"`

	Voters []Voter `json:"voters"`
	Labels []Label `json:"labels"`
	// Confused are pairs of an expected label and a wrong answer, the most frequent first. Failed
	// items do not count.
	Confused []Confused  `json:"confused"`
	Stages   []StageTime `json:"stages"`
	// Errors are the mistakes with the most confidence, worst first, at most Options.Errors.
	Errors []Mistake `json:"errors,omitempty"`
	// Dropped are the voters with more than 5 % of their answers not accepted.
	Dropped []DroppedReport `json:"dropped,omitempty"`
	// ByChance are the models that agree with the other voters no more than by chance.
	ByChance []ByChance `json:"by_chance,omitempty"`
}

// Scope separates items whose expected label the knowledge does not have: they are out of scope,
// and the right answer is none.
type Scope struct {
	In       int      `json:"in"`
	Out      int      `json:"out"`
	Accuracy float64  `json:"in_accuracy"` // of the items in scope
	Interval Interval `json:"in_accuracy_interval"`
	// Unanswered is the share of the items in scope that were left without an answer. A failed item
	// does not count as unanswered.
	Unanswered float64 `json:"in_unanswered"`
	// Recall is the share of the items out of scope that were left without an answer.
	Recall         float64  `json:"out_recall"`
	RecallInterval Interval `json:"out_recall_interval"`
	// Caught is the share of the items out of scope that were flagged or left without an answer,
	// Alarms is the same share of the items in scope.
	Caught float64 `json:"out_caught"`
	Alarms float64 `json:"in_caught"`
}

// Flags count the errors that the flag rule catches, and its false alarms, among the scored items.
// An error is an item without the right answer; failed items are errors.
type Flags struct {
	Errors  int `json:"errors"`
	Caught  int `json:"caught"`  // of Errors: flagged
	Flagged int `json:"flagged"` // Caught and Right together
	Right   int `json:"right"`   // of Flagged: false alarms
}

// Label is a row of the table of labels.
type Label struct {
	Label     string  `json:"label"`
	Name      string  `json:"name,omitempty"` // for people
	Support   int     `json:"support"`        // items that should get this label
	Answered  int     `json:"answered"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// StageTime is the work of one stage.
type StageTime struct {
	Stage string  `json:"stage"`
	Rows  int     `json:"rows"`
	Busy  float64 `json:"busy_seconds"` // sum over its calls, which overlap
}

// Worst returns the labels with the lowest F1, worst first.
func (r Report) Worst(n int) []Label {
	labels := slices.Clone(r.Labels)
	slices.SortStableFunc(labels, func(a, b Label) int { return cmp.Compare(a.F1, b.F1) })
	return labels[:min(n, len(labels))]
}

// Report computes the figures.
func (c *Counter) Report(t outcome.Totals) Report {
	c.flags.Flagged = c.flags.Caught + c.flags.Right
	r := Report{
		Items: t.Items, Scored: c.scored, Decided: c.decided, Failed: t.Failed, Unusable: t.Unusable, Undecided: t.Undecided, Flagged: t.Flagged,
		Accuracy: share(c.right, c.scored), AccuracyInterval: Wilson(c.right, c.scored), Flags: c.flags, Confused: confusions(c.confused), InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens,
	}
	if c.out.items > 0 {
		r.Scope = &Scope{
			In: c.in.items, Out: c.out.items, Accuracy: share(c.in.right, c.in.items), Interval: Wilson(c.in.right, c.in.items),
			Unanswered: share(c.in.unanswered, c.in.items),
			Recall:     share(c.out.right, c.out.items), RecallInterval: Wilson(c.out.right, c.out.items),
			Caught: share(c.out.caught, c.out.items), Alarms: share(c.in.caught, c.in.items),
		}
	}
	if c.answered > 0 {
		r.Agreement = c.agreement / float64(c.answered)
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
	r.Sets, r.Tree = c.reportSets(), c.nodes.report()
	for _, name := range c.voters {
		r.Voters = append(r.Voters, c.report(name))
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
