package rule

import "slices"

// writer is what must stand above a rule for a name to have a value.
type writer uint8

const (
	always writer = iota
	retrieves
	voters
	elects
)

// name is one name that rules see: its type, its value and who writes it.
type name struct {
	name   string
	writer writer
	typ    any            // a value of the type that the rule is checked against
	value  func(*Env) any // nil: only the store knows it, or it is a figure
}

// item and candidate are sdk records as rules see them: pointers, so that
// walking a list copies nothing, and without methods, which expr would offer.
type item struct {
	ID   string         `expr:"id"`
	Text string         `expr:"text"`
	Meta map[string]any `expr:"meta"`
}

type candidate struct {
	ID      string         `expr:"id"`
	Text    string         `expr:"text"`
	Label   string         `expr:"label"`
	Meta    map[string]any `expr:"meta"`
	Rank    int            `expr:"rank"`
	Score   float64        `expr:"score"`
	Dense   float64        `expr:"dense"`
	Lexical float64        `expr:"lexical"`
}

var common = []name{
	{"item", always, (*item)(nil), func(e *Env) any {
		return &item{e.Item.ID, e.Item.Text, e.Item.Meta}
	}},
	{"labels", retrieves, []string(nil), func(e *Env) any { return e.Labels.Sorted() }},
	{"candidate_labels", retrieves, []string(nil), func(e *Env) any { return e.CandidateLabels }},
	{"candidates", retrieves, []*candidate(nil), func(e *Env) any { return e.candidates() }},
	{"margin", voters, 0.0, func(e *Env) any { return e.Margin }},
	{"agreement", voters, 0.0, func(e *Env) any { return e.Agreement }},
	{"votes", voters, []Vote(nil), func(e *Env) any { return e.Votes }},
}

var answer = name{"answer", always, "", func(e *Env) any { return e.Answer }}

var ofKind = map[Kind][]name{
	Keep: {
		{"id", always, "", func(e *Env) any { return e.Candidate.ID }},
		{"text", always, "", func(e *Env) any { return e.Candidate.Text }},
		{"label", always, "", func(e *Env) any { return e.Candidate.Label }},
		{"meta", always, map[string]any(nil), func(e *Env) any { return map[string]any(e.Candidate.Meta) }},
		{"rank", always, 0, func(e *Env) any { return e.Rank }},
		{"score", always, 0.0, func(e *Env) any { return float64(e.Candidate.Score) }},
		{"dense", always, 0.0, func(e *Env) any { return float64(e.Candidate.Dense) }},
		{"lexical", always, 0.0, func(e *Env) any { return float64(e.Candidate.Lexical) }},
	},
	Accept: {answer},
	Flag:   {answer, {"confidence", always, 0.0, func(e *Env) any { return e.Confidence }}},
	Fallback: {
		{"failed", always, false, func(e *Env) any { return e.Failed }},
		{"error", always, "", func(e *Env) any { return e.Error }},
	},
	Filtering: {
		{"id", always, "", nil},
		{"label", always, "", nil},
		{"meta", always, map[string]any(nil), nil},
	},
	Whole: {{"knowledge", always, (*Extent)(nil), func(e *Env) any { return &e.Knowledge }}},
}

// Names lists the names that a rule of a kind may use, in the order of the
// documentation. "var" stands for var.NAME.
func Names(kind Kind) []string {
	list := []string{"var"}
	for _, n := range namesOf(kind) {
		list = append(list, n.name)
	}
	return list
}

func namesOf(kind Kind) []name {
	seen := common
	switch kind {
	case Filtering:
		seen = common[:1] // the item: nothing has been found for it yet
	case Whole, Expectation:
		seen = nil // it is asked once, before or after there are items
	}
	return slices.Concat(seen, ofKind[kind], figureNames(kind))
}

// written reports whether something above the rule writes the name, and what
// would.
func (s Scope) written(n name) (ok bool, needs string) {
	switch n.writer {
	case retrieves:
		return s.Candidates, "a retrieve stage"
	case voters:
		return s.Voters, "a sample stage"
	case elects:
		return s.Election, "an elect stage"
	}
	return true, ""
}

// candidates returns the item's candidates as rules see them. A keep rule is
// evaluated once per candidate, so they are made once per item.
func (e *Env) candidates() []*candidate {
	if len(e.Item.Candidates) == 0 {
		return nil
	}
	first := &e.Item.Candidates[0]
	if e.viewed == first && len(e.views) == len(e.Item.Candidates) {
		return e.views
	}
	all := make([]candidate, len(e.Item.Candidates))
	e.views, e.viewed = make([]*candidate, len(all)), first
	for i := range all {
		c := &e.Item.Candidates[i]
		all[i] = candidate{
			ID: c.ID, Text: c.Text, Label: c.Label, Meta: c.Meta, Rank: i + 1,
			Score: float64(c.Score), Dense: float64(c.Dense), Lexical: float64(c.Lexical),
		}
		e.views[i] = &all[i]
	}
	return e.views
}
