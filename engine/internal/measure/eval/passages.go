package eval

import (
	"math"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

// Cuts are the default lengths at which recall is measured.
var Cuts = []int{5, 10, 20, 100}

const (
	ndcgCut    = 10
	failureCut = 20
)

// Retrieval compares the lists of the retrieve and rerank stages with the gold passages of the
// input. Shares are means over the items with gold passages, all with the same weight.
type Retrieval struct {
	Items    int `json:"items"`        // with gold passages
	Without  int `json:"without_gold"` // items left out: no gold passages, or a person decided
	Failed   int `json:"failed"`       // of Items: failed; stages that they did not reach found nothing
	Passages int `json:"passages"`     // of all items together
	// Absent counts passages that the knowledge does not have. They can never be found, and count
	// as not found.
	Absent  int       `json:"absent"`
	Example string    `json:"absent_example,omitempty"`
	Stages  []Ranking `json:"stages"` // in file order
}

// Ranking measures the lists of one stage.
type Ranking struct {
	Stage   string `json:"stage"`   // as "retrieve.near"
	Longest int    `json:"longest"` // length of the longest list; recall does not grow beyond it
	// Recall is the mean share of an item's gold passages among its first K candidates. Anthropic's
	// article on contextual retrieval calls this mean Pass@k, in percent. Elsewhere that name means
	// the share of items with at least one passage found.
	Recall []Recall `json:"recall"`
	// Failure is 1 - recall at 20, the article's failure rate of retrieval.
	Failure float64 `json:"failure_at_20"`
	// NDCG is the normalised discounted cumulative gain of the first 10 (Jarvelin and Kekalainen,
	// "Cumulated gain-based evaluation of IR techniques", 2002) as trec_eval computes it: a
	// candidate gains its grade divided by log2(1 + rank), and the sum is divided by the sum of the
	// best possible list.
	NDCG float64 `json:"ndcg_at_10"`
	// MRR is the mean of 1 / rank of the first gold passage; a list without gold passages counts as
	// 0.
	MRR float64 `json:"mrr"`
}

// Recall is the recall at a length.
type Recall struct {
	K     int     `json:"k"`
	Share float64 `json:"share"`
}

// Passages compares the lists of stages with gold passages.
type Passages struct {
	cuts   []int
	found  Retrieval
	sums   map[string]*Ranking // by stage; sums, not yet means
	stages []string
	unseen []source.Gold // passages in no list: the knowledge may not have them
}

// NewPassages returns an empty counter that measures recall at these lengths.
func NewPassages(cuts []int) *Passages {
	cuts = slices.Compact(slices.Sorted(slices.Values(cuts)))
	return &Passages{cuts: cuts, sums: map[string]*Ranking{}}
}

// Add counts one result of a run that keeps its lists.
func (p *Passages) Add(r outcome.Result) {
	gold := relevant(r.Gold)
	if len(gold) == 0 || r.Decided != nil { // a person's decision needs no search
		p.found.Without++
		return
	}
	p.found.Items++
	p.found.Passages += len(gold)
	if r.Failure != nil {
		p.found.Failed++
	}
	seen := make([]bool, len(gold))
	for _, l := range r.Lists {
		ranked := rank(gold, l.Candidates)
		for i, found := range ranked.found {
			seen[i] = seen[i] || found
		}
		p.stage(l.Stage).add(ranked, len(l.Candidates))
	}
	for i, g := range gold {
		if !seen[i] {
			p.unseen = append(p.unseen, g)
		}
	}
}

// relevant returns the relevant passages, each once, with the best of its grades: a passage that a
// row names twice can be found only once.
func relevant(gold []source.Gold) []source.Gold {
	var all []source.Gold
	for _, g := range gold {
		if g.Grade == 0 {
			continue
		}
		same := slices.IndexFunc(all, func(h source.Gold) bool { return h.Quote == g.Quote && slices.Equal(h.IDs, g.IDs) })
		if same < 0 {
			all = append(all, g)
		} else {
			all[same].Grade = max(all[same].Grade, g.Grade)
		}
	}
	return all
}

func (p *Passages) stage(name string) *Ranking {
	s := p.sums[name]
	if s == nil {
		s = &Ranking{Stage: name}
		for _, k := range p.cuts {
			s.Recall = append(s.Recall, Recall{K: k})
		}
		p.sums[name], p.stages = s, append(p.stages, name)
	}
	return s
}

// ranked is the position of an item's gold passages in a list.
type ranked struct {
	places []int  // rank of each passage found, from 1
	found  []bool // by passage
	gold   int    // number of passages
	ndcg   float64
}

// rank finds gold passages in a list. If several entries hold the same passage, only the first
// counts.
func rank(gold []source.Gold, list []sdk.Candidate) ranked {
	r := ranked{gold: len(gold), found: make([]bool, len(gold))}
	gains := make([]float64, 0, len(list))
	for at, c := range list {
		gain := 0.0
		for i, g := range gold {
			if !r.found[i] && g.Is(c.ID, c.Meta, c.Text) {
				r.found[i] = true
				r.places = append(r.places, at+1)
				gain = max(gain, g.Grade)
			}
		}
		gains = append(gains, gain)
	}
	var best []float64
	for _, g := range gold {
		best = append(best, g.Grade)
	}
	slices.Sort(best)
	slices.Reverse(best)
	r.ndcg = gainOf(gains) / gainOf(best)
	return r
}

// NDCG returns the normalised discounted cumulative gain of the first 10 of a list, for an item
// with gold passages; see Ranking.
func NDCG(gold []source.Gold, list []sdk.Candidate) float64 { return rank(relevant(gold), list).ndcg }

// Recalled returns the share of an item's gold passages among the first k of a list.
func Recalled(gold []source.Gold, list []sdk.Candidate, k int) float64 {
	return rank(relevant(gold), list).within(k)
}

// Reciprocal returns 1 / rank of the first gold passage in a list; 0: there is none.
func Reciprocal(gold []source.Gold, list []sdk.Candidate) float64 {
	return rank(relevant(gold), list).reciprocal()
}

func (r ranked) reciprocal() float64 {
	if len(r.places) == 0 {
		return 0
	}
	return 1 / float64(r.places[0])
}

// gainOf returns the discounted cumulative gain of the first ndcgCut.
func gainOf(gains []float64) float64 {
	sum := 0.0
	for i, g := range gains[:min(ndcgCut, len(gains))] {
		sum += g / math.Log2(float64(i+2))
	}
	return sum
}

// within returns the share of the passages among the first k.
func (r ranked) within(k int) float64 {
	n := 0
	for _, place := range r.places {
		if place <= k {
			n++
		}
	}
	return share(n, r.gold)
}

func (s *Ranking) add(r ranked, length int) {
	s.Longest = max(s.Longest, length)
	for i := range s.Recall {
		s.Recall[i].Share += r.within(s.Recall[i].K)
	}
	s.Failure += r.within(failureCut) // a sum of recall; Report subtracts its mean from 1
	s.NDCG += r.ndcg
	s.MRR += r.reciprocal()
}

// Unseen returns the passages in no list: they may be missing from the knowledge.
func (p *Passages) Unseen() []source.Gold { return p.unseen }

// Report computes the figures. absent are the passages of Unseen that the knowledge does not have.
// It returns nil if no item has gold passages.
func (p *Passages) Report(absent []source.Gold) *Retrieval {
	if p.found.Items == 0 {
		return nil
	}
	r := p.found
	if r.Absent = len(absent); r.Absent > 0 {
		r.Example = absent[0].String()
	}
	n := float64(r.Items)
	for _, name := range p.stages {
		s := *p.sums[name]
		s.Recall = slices.Clone(s.Recall)
		for i := range s.Recall {
			s.Recall[i].Share /= n
		}
		s.Failure, s.NDCG, s.MRR = 1-s.Failure/n, s.NDCG/n, s.MRR/n
		r.Stages = append(r.Stages, s)
	}
	return &r
}

// Promised says whether the items keep a guarantee about the answers that are not flagged.
type Promised struct {
	Accuracy   float64 `json:"accuracy"` // least share of right answers among answers without a flag
	Confidence float64 `json:"confidence"`
	Answered   int     `json:"answered"` // scored items with an answer and no flag
	Right      int     `json:"right"`    // of Answered
	// Interval is the interval of the share Right / Answered. The promise is broken if all of it
	// lies below Accuracy, and kept if all of it lies above.
	Interval Interval `json:"interval"`

	// Caught is the least share of out-of-scope items flagged or left without an answer; 0: no
	// promise about them.
	Caught         float64  `json:"caught,omitempty"`
	Outside        int      `json:"out,omitempty"`        // items out of scope
	CaughtOf       int      `json:"out_caught,omitempty"` // of Outside
	CaughtInterval Interval `json:"out_caught_interval,omitzero"`
	// The promise holds up to the share Unknown of items out of scope. Exceeded is set if these
	// items have a larger share, by more than chance.
	Unknown  float64 `json:"unknown"`
	Exceeded bool    `json:"unknown_exceeded,omitempty"`

	scored  int
	counter *Counter
}

// NewPromised returns an empty counter for a promise, and for a knowledge with these labels.
func NewPromised(accuracy, confidence, caught, unknown float64, labels ...string) *Promised {
	return &Promised{Accuracy: accuracy, Confidence: confidence, Caught: caught, Unknown: unknown, counter: NewCounter(labels...)}
}

// Add counts one result. It ignores failed items, which say nothing about answers.
func (p *Promised) Add(r outcome.Result) {
	if p == nil || !Scored(r) || r.Failure != nil {
		return
	}
	p.scored++
	answered := r.Answer != "" && !r.Flagged
	if answered {
		p.Answered++
		if p.counter.Right(r) {
			p.Right++
		}
	}
	if p.counter.Outside(r) {
		if p.Outside++; !answered {
			p.CaughtOf++
		}
	}
	p.Exceeded = Wilson(p.Outside, p.scored).Low > p.Unknown
	p.Interval, p.CaughtInterval = Wilson(p.Right, p.Answered), Wilson(p.CaughtOf, p.Outside)
}
