package packet

import (
	"maps"
	"slices"
	"time"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// decided is an outcome.Decision; At is a text, with its offset.
type decided struct {
	By int `json:"by,omitempty"`
	At int `json:"at,omitempty"`
}

func (w *writer) decided(d *outcome.Decision) *decided {
	if d == nil {
		return nil
	}
	out := &decided{By: w.text(d.By)}
	if d.At != (time.Time{}) {
		at, err := d.At.MarshalText()
		if err != nil && w.err == nil {
			w.err = err
		}
		out.At = w.text(string(at))
	}
	return out
}

func (r *reader) decided(in *decided) *outcome.Decision {
	if in == nil {
		return nil
	}
	out := &outcome.Decision{By: r.text(in.By)}
	if in.At != 0 {
		if err := out.At.UnmarshalText([]byte(r.text(in.At))); err != nil {
			r.fail("%v", err)
		}
	}
	return out
}

// prompted is an outcome.Prompted: the hashes of its prompts.
type prompted struct {
	Stage  int   `json:"stage"`
	Hashes []int `json:"hashes,omitzero"`
}

func (w *writer) prompts(all []outcome.Prompted) []prompted {
	return each(all, func(p outcome.Prompted) prompted {
		return prompted{w.text(p.Stage), each(journal.Hashes(p), w.text)}
	})
}

func (r *reader) prompts(in []prompted) []outcome.Prompted {
	return each(in, func(p prompted) outcome.Prompted {
		return outcome.Prompted{Stage: r.text(p.Stage), Hashes: each(p.Hashes, r.text)}
	})
}

// requests are columns: the keys stand one after the other.
type requests struct {
	Voters []int  `json:"voters,omitempty"`
	Keys   []byte `json:"keys,omitempty"`
}

func (w *writer) requests(all []outcome.Request) *requests {
	if all == nil {
		return nil
	}
	out := &requests{}
	for _, q := range all {
		out.Voters, out.Keys = append(out.Voters, w.text(q.Voter)), append(out.Keys, q.Key[:]...)
	}
	return out
}

func (r *reader) requests(in *requests) []outcome.Request {
	if in == nil {
		return nil
	}
	const size = len(sdk.Key{})
	if len(in.Keys) != size*len(in.Voters) {
		r.fail("%d requests have %d bytes of keys", len(in.Voters), len(in.Keys))
		return nil
	}
	all := make([]outcome.Request, len(in.Voters))
	for i, voter := range in.Voters {
		all[i] = outcome.Request{Voter: r.text(voter), Key: sdk.Key(in.Keys[size*i:])}
	}
	return all
}

// pairs are texts by texts.
func (w *writer) pairs(all map[string]string) []int {
	if all == nil {
		return nil
	}
	out := []int{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, w.text(key), w.text(all[key]))
	}
	return out
}

func (r *reader) pairs(in []int) map[string]string {
	if in == nil || !r.tuples("pairs", in, 2) {
		return nil
	}
	all := map[string]string{}
	for pair := range slices.Chunk(in, 2) {
		all[r.text(pair[0])] = r.text(pair[1])
	}
	return all
}

// shared is what parts of a packet refer to by number.
type shared struct {
	Texts   []string `json:"texts,omitempty"`
	Metas   [][]int  `json:"metas,omitempty"`
	Entries *entries `json:"entries,omitempty"`
}

func (w *writer) shared() shared {
	s := shared{Texts: w.texts, Metas: w.metas}
	if len(w.entries.ID) > 0 {
		s.Entries = &w.entries
	}
	return s
}

func (s shared) reader() *reader {
	r := &reader{texts: s.Texts, metas: s.Metas}
	r.unpack()
	if s.Entries != nil {
		r.entries = *s.Entries
		r.check()
	}
	return r
}

// state is what answers say beside the results.
type state struct {
	Left          map[int]*fault `json:"left,omitzero"`
	Bills         map[int]*bill  `json:"bills,omitzero"`
	Halted        []*failure     `json:"halted,omitzero"`
	Ended         *fault         `json:"ended,omitempty"`
	Distributions []int          `json:"distributions,omitzero"`
	Times         []times        `json:"times,omitzero"`
}

// times is an outcome.StageTime.
type times struct {
	Stage int           `json:"stage"`
	Rows  int           `json:"rows"`
	Busy  time.Duration `json:"busy"`
}

func (w *writer) state(a run.Answers) state {
	s := state{
		Halted: each(a.Halted, w.failure), Ended: w.fault(a.Ended), Distributions: each(a.Distributions, w.text),
		Times: each(a.Times, func(t outcome.StageTime) times { return times{w.text(t.Stage), t.Rows, t.Busy} }),
	}
	if a.Left != nil {
		s.Left = map[int]*fault{}
	}
	for _, at := range slices.Sorted(maps.Keys(a.Left)) { // texts have their numbers in this order
		s.Left[at] = w.fault(a.Left[at])
	}
	if a.Bills != nil {
		s.Bills = map[int]*bill{}
	}
	for at, b := range a.Bills {
		s.Bills[at] = billOf(&b)
	}
	return s
}

func (r *reader) state(in *state, rows int) run.Answers {
	out := run.Answers{
		Halted: each(in.Halted, r.some), Ended: r.fault(in.Ended), Distributions: each(in.Distributions, r.text),
		Times: each(in.Times, func(t times) outcome.StageTime {
			return outcome.StageTime{Stage: r.text(t.Stage), Rows: t.Rows, Busy: t.Busy}
		}),
	}
	if in.Left != nil {
		out.Left = make(map[int]error, len(in.Left))
	}
	for at, f := range in.Left {
		if out.Left[at] = r.fault(f); f == nil || at < 0 || at >= rows {
			r.fail("item %d of %d is left for no reason", at, rows)
		}
	}
	if in.Bills != nil {
		out.Bills = make(map[int]outcome.Bill, len(in.Bills))
	}
	for at, b := range in.Bills {
		if b == nil || at < 0 || at >= rows {
			r.fail("item %d of %d has no bill", at, rows)
			continue
		}
		out.Bills[at] = *r.bill(b)
	}
	return out
}

func (w *writer) rules(all []outcome.Rule) []int {
	return flat(all, func(out []int, one outcome.Rule) []int {
		return append(out, w.text(one.Stage), w.text(one.Rule), one.N, one.Of, w.text(one.Name), w.text(one.Why))
	})
}

func (r *reader) rules(in []int) []outcome.Rule {
	return unflat(r, "rules", in, 6, func(one []int) outcome.Rule {
		return outcome.Rule{Stage: r.text(one[0]), Rule: r.text(one[1]), N: one[2], Of: one[3], Name: r.text(one[4]), Why: r.text(one[5])}
	})
}

func (w *writer) retries(all []outcome.Retry) []int {
	return flat(all, func(out []int, one outcome.Retry) []int {
		return append(out, w.text(one.Stage), w.text(one.Why), one.Times)
	})
}

func (r *reader) retries(in []int) []outcome.Retry {
	return unflat(r, "retries", in, 3, func(one []int) outcome.Retry {
		return outcome.Retry{Stage: r.text(one[0]), Why: r.text(one[1]), Times: one[2]}
	})
}

// Trim returns answers without what nobody reads where the journal keeps what was seen of some
// items (engine.Options.Keep; empty: notable ones) and, unless lists is set, nothing reads
// the texts of lists (engine.Options.Lists). The given answers stay as they are.
func Trim(a run.Answers, keep journal.Keep, lists bool) run.Answers {
	if lists {
		return a
	}
	a.Results = slices.Clone(a.Results)
	for i := range a.Results {
		trim(&a.Results[i], keep == journal.KeepAll)
	}
	return a
}

func trim(r *outcome.Result, all bool) {
	if r.Rest == nil {
		r.Votes, r.Rest = shorten(r.Votes)
	}
	if !r.RetrievalOnly {
		r.Candidates = nil
	}
	r.Citations = each(r.Citations, func(c outcome.Citation) outcome.Citation { // metadata say where a passage is from
		c.Passage.Text, c.Passage.Context = "", ""
		return c
	})
	if !all && !journal.Notable(r) {
		r.Lists, r.Prompts, r.Requests, r.Rules, r.Retries = nil, nil, nil, nil, nil
		return
	}
	given := r.Lists
	r.Lists = slices.Clone(given)
	for i := range r.Lists {
		l := &r.Lists[i]
		switch {
		case l.Whole && len(l.Candidates) > 0: // the journal keeps that there are some
			l.Candidates = bare(l.Candidates[:1])
		case r.RetrievalOnly && same(l.Candidates, r.Candidates): // they have their texts anyway
		default:
			l.Candidates = bare(l.Candidates)
		}
	}
}

// shorten is outcome.Shorten, where that leaves something out.
func shorten(votes []outcome.Vote) ([]outcome.Vote, []outcome.Rest) {
	if kept, rest := outcome.Shorten(votes); rest != nil {
		return kept, rest
	}
	return votes, nil
}

// bare are candidates with what a journal keeps of them.
func bare(all []sdk.Candidate) []sdk.Candidate {
	return each(all, func(c sdk.Candidate) sdk.Candidate {
		return sdk.Candidate{ID: c.ID, Score: c.Score, Dense: c.Dense, Lexical: c.Lexical}
	})
}
