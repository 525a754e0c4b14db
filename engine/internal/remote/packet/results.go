package packet

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// fault is an error: its text and its code.
type fault struct {
	Text  int           `json:"text,omitempty"`
	Code  sdk.Code      `json:"code,omitempty"`
	After time.Duration `json:"after,omitempty"`
	Of    *failure      `json:"of,omitempty"` // it is an outcome.Failure, and this is all of it
}

// failure is an outcome.Failure.
type failure struct {
	Stage int    `json:"stage,omitempty"`
	Err   *fault `json:"err,omitempty"`
}

func (w *writer) fault(err error) *fault {
	if err == nil {
		return nil
	}
	if f, ok := err.(*outcome.Failure); ok { //nolint:errorlint // one that is wrapped is a text
		return &fault{Of: w.failure(f)}
	}
	out := &fault{Text: w.text(err.Error())}
	var coded *sdk.Error
	if errors.As(err, &coded) {
		out.Code, out.After = coded.Code, coded.RetryAfter
	}
	return out
}

func (r *reader) fault(in *fault) error {
	switch {
	case in == nil:
		return nil
	case in.Of != nil:
		return r.failure(in.Of)
	}
	err := errors.New(r.text(in.Text))
	if in.Code == sdk.CodeInternal && in.After == 0 { // what an error without a code has
		return err
	}
	return &sdk.Error{Code: in.Code, RetryAfter: in.After, Err: err}
}

func (w *writer) failure(f *outcome.Failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{w.text(f.Stage), w.fault(f.Err)}
}

func (r *reader) failure(in *failure) *outcome.Failure {
	if in == nil {
		return nil
	}
	out := &outcome.Failure{Stage: r.text(in.Stage), Err: r.fault(in.Err)}
	if out.Err == nil {
		r.fail("a failure has no error")
	}
	return out
}

// some is failure for one of a list.
func (r *reader) some(in *failure) *outcome.Failure {
	if in == nil {
		r.fail("a failure is missing")
	}
	return r.failure(in)
}

// item is an outcome.Result. Numbers are those of texts where nothing else is said.
type item struct {
	Of         *of           `json:"of,omitempty"` // nil: it says of its row what the row says
	Answer     int           `json:"answer,omitempty"`
	Sure       floats        `json:"sure,omitempty"` // agreement, confidence and cost; empty: they are 0
	Flagged    bool          `json:"flagged,omitempty"`
	Retrieval  bool          `json:"retrieval,omitempty"`
	FreeText   bool          `json:"free,omitempty"`
	Reason     int           `json:"reason,omitempty"`
	Decided    *decided      `json:"decided,omitempty"`
	Rest       []int         `json:"rest,omitzero"` // voter, votes and how many of these are accepted
	Votes      *votes        `json:"votes,omitempty"`
	Citations  *cited        `json:"citations,omitempty"`
	Candidates *found        `json:"candidates,omitempty"`
	Lists      []list        `json:"lists,omitzero"`
	Prompts    []prompted    `json:"prompts,omitzero"`
	Requests   *requests     `json:"requests,omitempty"`
	Found      int           `json:"found,omitempty"` // of Basis
	Drawn      []int         `json:"drawn,omitzero"`  // of Basis: stages and digests
	From       int           `json:"from,omitempty"`  //
	Usage      []uint64      `json:"usage,omitempty"` // input, cached and output tokens; empty: they are 0
	Usages     []uint64      `json:"usages,omitzero"` // voters, each with these three
	Priced     []int         `json:"priced,omitzero"` // voters with costs
	Costs      floats        `json:"costs,omitempty"` // of these
	Failure    *failure      `json:"failure,omitempty"`
	Skipped    []*failure    `json:"skipped,omitzero"`
	Missing    []*failure    `json:"missing,omitzero"`
	Latency    time.Duration `json:"latency,omitempty"`
	Rules      []int         `json:"rules,omitzero"`   // stage, rule, n, of, name and why
	Retries    []int         `json:"retries,omitzero"` // stage, why and times
	Unasked    *bill         `json:"unasked,omitempty"`
	Asked      *bill         `json:"asked,omitempty"`
}

// of is what a result says of its row.
type of struct {
	Line     int    `json:"line,omitempty"`
	File     int    `json:"file,omitempty"`
	At       int    `json:"at,omitempty"`
	ID       int    `json:"id,omitempty"`
	Text     int    `json:"text,omitempty"`
	Expected int    `json:"expected,omitempty"`
	Gold     []int  `json:"gold,omitzero"`
	Grades   floats `json:"grades,omitempty"`
	Fields   []int  `json:"fields,omitzero"`
}

// about is what a result says of its row in every run (stage.Graph.Result).
func about(row source.Row) outcome.Result {
	r := outcome.Result{Line: row.Line, ID: row.ID, Text: row.Text, Expected: row.Label, Gold: row.Gold, Fields: row.Fields}
	if row.ID == "" {
		r.ID = strconv.Itoa(row.Line)
	}
	if file, line := row.Place(); file != "" {
		r.File, r.FileLine = file, line
	}
	return r
}

func (w *writer) of(r *outcome.Result, row source.Row) *of {
	said := about(row)
	if r.Line == said.Line && r.File == said.File && r.FileLine == said.FileLine && r.ID == said.ID && r.Text == said.Text && r.Expected == said.Expected &&
		(same(r.Gold, said.Gold) || reflect.DeepEqual(r.Gold, said.Gold)) && (same(r.Fields, said.Fields) || reflect.DeepEqual(r.Fields, said.Fields)) {
		return nil
	}
	out := &of{Line: r.Line, File: w.text(r.File), At: r.FileLine, ID: w.text(r.ID), Text: w.text(r.Text), Expected: w.text(r.Expected), Fields: w.fields(r.Fields)}
	out.Gold, out.Grades = w.gold(r.Gold)
	return out
}

func (r *reader) of(in *of, row source.Row) outcome.Result {
	if in == nil {
		return about(row)
	}
	return outcome.Result{
		Line: in.Line, File: r.text(in.File), FileLine: in.At, ID: r.text(in.ID), Text: r.text(in.Text), Expected: r.text(in.Expected),
		Gold: r.gold(in.Gold, in.Grades), Fields: r.fields(in.Fields),
	}
}

// result is nil for a result that has nothing: that of an item that is left.
func (w *writer) result(r *outcome.Result, row source.Row) *item {
	if reflect.ValueOf(*r).IsZero() {
		return nil
	}
	out := &item{
		Of: w.of(r, row), Answer: w.text(r.Answer), Flagged: r.Flagged, Retrieval: r.RetrievalOnly, FreeText: r.FreeText, Reason: w.text(r.Reason),
		Decided: w.decided(r.Decided), Votes: w.votes(r.Votes), Rest: w.rest(r.Rest), Citations: w.cited(r.Citations), Prompts: w.prompts(r.Prompts), Requests: w.requests(r.Requests),
		Found: w.text(r.Basis.Found), Drawn: w.pairs(r.Basis.Drawn), From: w.text(r.From), Usages: w.usages(r.Usages),
		Failure: w.failure(r.Failure), Skipped: each(r.Skipped, w.failure), Missing: each(r.Missing, w.failure), Latency: r.Latency,
		Rules: w.rules(r.Rules), Retries: w.retries(r.Retries), Unasked: billOf(r.Unasked), Asked: billOf(r.Asked),
	}
	if sure := [3]float64{r.Agreement, r.Confidence, r.Cost}; sure != [3]float64{} || math.Signbit(sure[0]) || math.Signbit(sure[1]) || math.Signbit(sure[2]) {
		out.Sure = floatsOf(sure[:]...)
	}
	if r.Usage != (sdk.Usage{}) {
		out.Usage = tokens(r.Usage)
	}
	out.Priced, out.Costs = w.costs(r.Costs)
	w.lists(out, r)
	return out
}

func (r *reader) result(in *item, row source.Row) outcome.Result {
	if in == nil {
		return outcome.Result{}
	}
	out := r.of(in.Of, row)
	out.Answer, out.Flagged, out.RetrievalOnly, out.FreeText, out.Reason = r.text(in.Answer), in.Flagged, in.Retrieval, in.FreeText, r.text(in.Reason)
	out.Decided, out.Votes, out.Rest, out.Citations = r.decided(in.Decided), r.votes(in.Votes), r.rest(in.Rest), r.cited(in.Citations)
	out.Prompts, out.Requests = r.prompts(in.Prompts), r.requests(in.Requests)
	out.Basis, out.From = outcome.Basis{Found: r.text(in.Found), Drawn: r.pairs(in.Drawn)}, r.text(in.From)
	out.Usages, out.Costs = r.usages(in.Usages), r.costs(in.Priced, in.Costs)
	out.Failure, out.Skipped, out.Missing, out.Latency = r.failure(in.Failure), each(in.Skipped, r.some), each(in.Missing, r.some), in.Latency
	out.Rules, out.Retries, out.Unasked, out.Asked = r.rules(in.Rules), r.retries(in.Retries), r.bill(in.Unasked), r.bill(in.Asked)
	if len(in.Sure) > 0 {
		if n := r.numbers(in.Sure, 3); n != nil {
			out.Agreement, out.Confidence, out.Cost = n[0], n[1], n[2]
		}
	}
	if len(in.Usage) > 0 {
		out.Usage = r.usage(in.Usage)
	}
	r.lists(&out, in)
	return out
}

// bill is an outcome.Bill.
type bill struct {
	Calls     int    `json:"calls"`
	Amounts   floats `json:"amounts"` // cost, most and gain
	Unbounded bool   `json:"unbounded,omitempty"`
}

func billOf(b *outcome.Bill) *bill {
	if b == nil {
		return nil
	}
	return &bill{b.Calls, floatsOf(b.Cost, b.Most, b.Gain), b.Unbounded}
}

func (r *reader) bill(in *bill) *outcome.Bill {
	if in == nil {
		return nil
	}
	out := &outcome.Bill{Calls: in.Calls, Unbounded: in.Unbounded}
	if n := r.numbers(in.Amounts, 3); n != nil {
		out.Cost, out.Most, out.Gain = n[0], n[1], n[2]
	}
	return out
}

func tokens(u sdk.Usage) []uint64 { return []uint64{u.InputTokens, u.CachedTokens, u.OutputTokens} }

func (r *reader) usage(in []uint64) sdk.Usage {
	if len(in) != 3 {
		r.fail("usage is three numbers, and not %d", len(in))
		return sdk.Usage{}
	}
	return sdk.Usage{InputTokens: in[0], CachedTokens: in[1], OutputTokens: in[2]}
}

func (w *writer) usages(all map[string]sdk.Usage) []uint64 {
	if all == nil {
		return nil
	}
	out := []uint64{}
	for _, voter := range slices.Sorted(maps.Keys(all)) {
		out = append(append(out, uint64(w.text(voter))), tokens(all[voter])...)
	}
	return out
}

func (r *reader) usages(in []uint64) map[string]sdk.Usage {
	if in == nil {
		return nil
	}
	all := map[string]sdk.Usage{}
	for one := range slices.Chunk(in, 4) {
		all[r.text(int(min(one[0], maxSize)))] = r.usage(one[1:]) // no packet has that many texts
	}
	return all
}

// costs are the voters that have a price, and what they took.
func (w *writer) costs(all map[string]float64) (voters []int, costs floats) {
	if all == nil {
		return nil, nil
	}
	voters = []int{}
	for _, voter := range slices.Sorted(maps.Keys(all)) {
		voters, costs = append(voters, w.text(voter)), append(costs, floatsOf(all[voter])...)
	}
	return voters, costs
}

func (r *reader) costs(voters []int, costs floats) map[string]float64 {
	if voters == nil {
		return nil
	}
	all := map[string]float64{}
	for i, cost := range r.numbers(costs, len(voters)) {
		all[r.text(voters[i])] = cost
	}
	return all
}

// votes are columns, of which those at the end are left out where nothing stands in them.
type votes struct {
	Voter    []int  `json:"voter,omitempty"`
	Answer   []int  `json:"answer,omitempty"`
	Weight   floats `json:"weight,omitempty"`
	Accepted []byte `json:"accepted,omitempty"` // 1: it is

	Reason      []int `json:"reason,omitempty"`
	Reading     []int `json:"reading,omitempty"`
	Explanation []int `json:"explanation,omitempty"`
	Model       []int `json:"model,omitempty"`
}

func (w *writer) votes(all []outcome.Vote) *votes {
	if all == nil {
		return nil
	}
	n := len(all)
	out := &votes{Voter: make([]int, n), Answer: make([]int, n), Weight: make(floats, 0, 8*n), Accepted: make([]byte, n)}
	for i := range all {
		v := &all[i]
		out.Voter[i], out.Answer[i] = w.text(v.Voter), w.text(v.Answer)
		out.Weight = append(out.Weight, floatsOf(v.Weight)...)
		if v.Accepted {
			out.Accepted[i] = 1
		}
		for _, c := range []struct {
			column *[]int
			text   string
		}{{&out.Reason, v.Reason}, {&out.Reading, v.Reading}, {&out.Explanation, v.Explanation}, {&out.Model, v.Model}} {
			if c.text != "" && *c.column == nil {
				*c.column = make([]int, n)
			}
			if c.text != "" {
				(*c.column)[i] = w.text(c.text)
			}
		}
	}
	return out
}

func (r *reader) votes(in *votes) []outcome.Vote {
	if in == nil {
		return nil
	}
	n := len(in.Voter)
	optional := func(column []int) bool { return len(column) == 0 || len(column) == n }
	weights := r.numbers(in.Weight, n)
	if len(in.Answer) != n || len(weights) != n || len(in.Accepted) != n ||
		!optional(in.Reason) || !optional(in.Reading) || !optional(in.Explanation) || !optional(in.Model) {
		r.fail("columns of %d votes have other lengths", n)
		return nil
	}
	all := make([]outcome.Vote, n)
	for i := range all {
		v := &all[i]
		v.Voter, v.Answer, v.Weight, v.Accepted = r.text(in.Voter[i]), r.text(in.Answer[i]), weights[i], in.Accepted[i] == 1
		for _, c := range []struct {
			column []int
			text   *string
		}{{in.Reason, &v.Reason}, {in.Reading, &v.Reading}, {in.Explanation, &v.Explanation}, {in.Model, &v.Model}} {
			if len(c.column) > 0 {
				*c.text = r.text(c.column[i])
			}
		}
	}
	return all
}

func (w *writer) rest(all []outcome.Rest) []int {
	return flat(all, func(out []int, one outcome.Rest) []int {
		return append(out, w.text(one.Voter), one.Votes, one.Accepted)
	})
}

func (r *reader) rest(in []int) []outcome.Rest {
	return unflat(r, "votes left out", in, 3, func(one []int) outcome.Rest {
		return outcome.Rest{Voter: r.text(one[0]), Votes: one[1], Accepted: one[2]}
	})
}
