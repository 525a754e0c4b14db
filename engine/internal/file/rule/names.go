package rule

import (
	"reflect"
	"slices"
)

// Name describes, for people, a name that rules of a kind may use.
type Name struct {
	Name   string
	Type   string // in words
	Needs  string // what must stand above the rule or, for an Expectation, anywhere in the pipeline; empty: nothing
	Doc    string // empty: the name explains itself
	Fields []Name // of the record, or of each record in the list

	writer writer
}

// Described describes the names that a rule of a kind may use, without var.
func Described(kind Kind) []Name {
	var all []Name
	for _, n := range namesOf(kind) {
		t := reflect.TypeOf(n.typ)
		_, needs := Scope{}.written(n)
		all = append(all, Name{Name: n.name, Type: inWords(t), Needs: needs, Doc: docOf(n.name, kind), Fields: fieldNames(t), writer: n.writer})
	}
	return all
}

// Offers reports whether something above the rule writes the name.
func (s Scope) Offers(n Name) bool {
	ok, _ := s.written(name{writer: n.writer})
	return ok
}

// Function describes a function that rules of a kind may call.
type Function struct {
	Name string
	Form string // such as recall("label"); empty: the expr language defines it
	Doc  string
}

// Functions lists the functions that rules of a kind may call, the kind's own first.
func Functions(kind Kind) []Function {
	var all []Function
	for _, f := range figures {
		if kind == Expectation && f.form != "" {
			all = append(all, Function{f.name, f.form, f.doc})
		}
	}
	for _, b := range builtins {
		all = append(all, Function{Name: b})
	}
	return all
}

func fieldNames(t reflect.Type) []Name {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var all []Name
	for f := range t.Fields() {
		all = append(all, Name{Name: f.Tag.Get("expr"), Type: inWords(f.Type)})
	}
	return all
}

func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int, reflect.Float64:
		return "a number"
	}
	return describe(t.String())
}

// writer says what must stand above a rule for a name to have a value.
type writer uint8

const (
	always writer = iota
	retrieves
	voters
	elects
)

// name is a name that rules see: its type, its value and what writes it.
type name struct {
	name   string
	writer writer
	typ    any            // a value of the type by which rules are checked
	value  func(*Env) any // nil: only the store knows it, or it is a figure
}

// item and candidate are the sdk records for rules. They are pointers, so that walking a list
// copies nothing. They have no methods, which expr would offer.
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
	Flag: {
		answer,
		{"confidence", always, 0.0, func(e *Env) any { return e.Confidence }},
		{"unknown", always, 0.0, func(e *Env) any { return e.Unknown }},
	},
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

// Names lists the names that a rule of a kind may use, in the order of the documentation. "var"
// means var.NAME.
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
		seen = common[:1] // only the item: nothing has been found for it yet
	case Whole, Expectation:
		seen = nil // evaluated once, before or after all items
	}
	return slices.Concat(seen, ofKind[kind], figureNames(kind))
}

// written reports whether something above the rule writes the name, and which stage could.
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

// candidates returns the item's candidates for rules. A keep rule runs once per candidate, so the
// list is made only once per item.
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
