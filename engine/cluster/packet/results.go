package packet

import (
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

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
