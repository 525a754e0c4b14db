package packet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// cited are citations.
type cited struct {
	Numbers []int `json:"numbers,omitempty"`
	found
}

func (w *writer) cited(all []outcome.Citation) *cited {
	if all == nil {
		return nil
	}
	out, passages := &cited{}, make([]sdk.Candidate, len(all))
	for i, c := range all {
		out.Numbers, passages[i] = append(out.Numbers, c.Number), c.Passage
	}
	out.found = *w.found(passages)
	return out
}

func (r *reader) cited(in *cited) []outcome.Citation {
	if in == nil {
		return nil
	}
	passages := r.found(&in.found)
	if len(passages) != len(in.Numbers) || in.As != 0 {
		r.fail("%d passages have %d numbers", len(passages), len(in.Numbers))
		return nil
	}
	all := make([]outcome.Citation, len(passages))
	for i := range all {
		all[i] = outcome.Citation{Number: in.Numbers[i], Passage: passages[i]}
	}
	return all
}

// entries are what candidates say of their entries, each once: items find the same ones, and a
// reranker leaves what a search has found.
type entries struct {
	ID      []int `json:"id"`
	Text    []int `json:"text"`
	Label   []int `json:"label"`
	Context []int `json:"context"`
	Meta    []int `json:"meta"`
}

// found are candidates: their entries, and their three scores as they are in memory.
type found struct {
	Entries []int  `json:"entries,omitempty"`
	Scores  []byte `json:"scores,omitempty"`
	// As is the list, from 1, whose candidates these are: those of a result are usually those of
	// its last list.
	As int `json:"as,omitempty"`
}

type list struct {
	Stage int    `json:"stage"`
	Whole bool   `json:"whole,omitempty"`
	Found *found `json:"found,omitempty"`
}

// scores is how many bytes those of a candidate take.
const scores = 12

func (w *writer) entry(c *sdk.Candidate) int {
	key := [5]int{w.text(c.ID), w.text(c.Text), w.text(c.Label), w.text(c.Context), w.meta(c.Meta)}
	n, ok := w.byEntry[key]
	if !ok {
		e := &w.entries
		for i, column := range []*[]int{&e.ID, &e.Text, &e.Label, &e.Context, &e.Meta} {
			*column = append(*column, key[i])
		}
		n = len(e.ID) - 1
		w.byEntry[key] = n
	}
	return n
}

func (w *writer) found(all []sdk.Candidate) *found {
	if all == nil {
		return nil
	}
	out := &found{Entries: make([]int, len(all)), Scores: make([]byte, 0, scores*len(all))}
	for i := range all {
		c := &all[i]
		out.Entries[i] = w.entry(c)
		for _, score := range []float32{c.Score, c.Dense, c.Lexical} {
			out.Scores = binary.LittleEndian.AppendUint32(out.Scores, math.Float32bits(score))
		}
	}
	return out
}

// check looks whether the columns of entries are equally long.
func (r *reader) check() {
	e := &r.entries
	for _, column := range [][]int{e.Text, e.Label, e.Context, e.Meta} {
		if len(column) != len(e.ID) {
			r.fail("columns of entries have %d and %d values", len(e.ID), len(column))
			r.entries = entries{}
			return
		}
	}
}

func (r *reader) found(in *found) []sdk.Candidate {
	if in == nil {
		return nil
	}
	if len(in.Scores) != scores*len(in.Entries) {
		r.fail("%d candidates have %d bytes of scores", len(in.Entries), len(in.Scores))
		return nil
	}
	all, e := make([]sdk.Candidate, len(in.Entries)), &r.entries
	for i, n := range in.Entries {
		if n < 0 || n >= len(e.ID) {
			r.fail("there is no entry %d", n)
			return nil
		}
		c := &all[i]
		*c = sdk.Candidate{ID: r.text(e.ID[n]), Text: r.text(e.Text[n]), Label: r.text(e.Label[n]), Context: r.text(e.Context[n]), Meta: r.meta(e.Meta[n])}
		at := in.Scores[scores*i:]
		for j, score := range []*float32{&c.Score, &c.Dense, &c.Lexical} {
			*score = math.Float32frombits(binary.LittleEndian.Uint32(at[4*j:]))
		}
	}
	return all
}

// lists are those of a result, with its candidates.
func (w *writer) lists(out *item, r *outcome.Result) {
	shared := 0
	out.Lists = each(r.Lists, func(l outcome.List) list { return list{w.text(l.Stage), l.Whole, w.found(l.Candidates)} })
	for i, l := range r.Lists {
		if len(l.Candidates) > 0 && same(l.Candidates, r.Candidates) {
			shared = i + 1
		}
	}
	if shared > 0 {
		out.Candidates = &found{As: shared}
	} else {
		out.Candidates = w.found(r.Candidates)
	}
}

func (r *reader) lists(out *outcome.Result, in *item) {
	out.Lists = each(in.Lists, func(l list) outcome.List {
		return outcome.List{Stage: r.text(l.Stage), Whole: l.Whole, Candidates: r.found(l.Found)}
	})
	switch c := in.Candidates; {
	case c == nil || c.As == 0:
		out.Candidates = r.found(c)
	case c.As < 0 || c.As > len(out.Lists) || len(c.Entries) > 0:
		r.fail("there is no list %d", c.As)
	default:
		out.Candidates = out.Lists[c.As-1].Candidates
	}
}

// each makes something of each element; nil of nil.
func each[A, B any](all []A, of func(A) B) []B {
	if all == nil {
		return nil
	}
	out := make([]B, len(all))
	for i := range all {
		out[i] = of(all[i])
	}
	return out
}

// flat is a list of tuples as numbers, one behind the other; nil of nil.
func flat[T any](all []T, add func(out []int, one T) []int) []int {
	if all == nil {
		return nil
	}
	out := []int{}
	for _, one := range all {
		out = add(out, one)
	}
	return out
}

// unflat makes something of each tuple of n numbers.
func unflat[T any](r *reader, what string, in []int, n int, of func([]int) T) []T {
	if in == nil || !r.tuples(what, in, n) {
		return nil
	}
	out := make([]T, 0, len(in)/n)
	for one := range slices.Chunk(in, n) {
		out = append(out, of(one))
	}
	return out
}

// tuples reports whether a list is one of tuples of n.
func (r *reader) tuples(what string, list []int, n int) bool {
	if len(list)%n != 0 {
		r.fail("%s of %d numbers, which is no multiple of %d", what, len(list), n)
		return false
	}
	return true
}

// decoded reads items that are JSON of their own, so that it is known how many there are before
// anything is made of them.
func decoded[T any](r *reader, all []json.RawMessage) []T {
	if all == nil {
		return nil
	}
	if len(all) > maxItems {
		r.fail("%d items are more than %d", len(all), maxItems)
		return nil
	}
	out := make([]T, len(all))
	for i, one := range all {
		dec := json.NewDecoder(bytes.NewReader(one))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&out[i]); err != nil {
			r.fail("item %d: %v", i+1, err)
			return nil
		}
	}
	return out
}

func (r *reader) rows(in []json.RawMessage) []source.Row {
	return each(decoded[row](r, in), r.row)
}

func (r *reader) results(in []json.RawMessage, rows []source.Row) []outcome.Result {
	all := decoded[*item](r, in)
	if all == nil {
		return nil
	}
	if len(all) != len(rows) {
		r.fail("%d results are not those of %d rows", len(all), len(rows))
		return nil
	}
	out := make([]outcome.Result, len(all))
	for i, one := range all {
		out[i] = r.result(one, rows[i])
	}
	return out
}

// meta is the number of metadata, from 1; 0: there is none.
func (w *writer) meta(m sdk.Meta) int {
	if m == nil {
		return 0
	}
	at := reflect.ValueOf(m).Pointer()
	if n, ok := w.byMap[at]; ok { // stages share the metadata of an entry
		return n
	}
	all := make([]int, 0, 3*len(m))
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		one := w.value(name, m[name])
		all = append(all, one[:]...)
		for _, n := range one {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	n, ok := w.byText[string(key)]
	if !ok {
		w.metas = append(w.metas, all)
		n = len(w.metas)
		w.byText[string(key)] = n
	}
	w.byMap[at] = n
	return n
}

// madeMeta is metadata that was read, which all that have it share.
type madeMeta struct {
	sdk.Meta
	is bool
}

func (r *reader) meta(n int) sdk.Meta {
	if n == 0 {
		return nil
	}
	if n < 0 || n > len(r.metas) {
		r.fail("there is no metadata %d", n)
		return nil
	}
	if r.made == nil {
		r.made = make([]madeMeta, len(r.metas))
	}
	if made := &r.made[n-1]; !made.is && r.tuples("metadata", r.metas[n-1], 3) {
		made.Meta, made.is = sdk.Meta{}, true
		for one := range slices.Chunk(r.metas[n-1], 3) {
			name, value := r.value(one)
			made.Meta[name] = value
		}
	}
	return r.made[n-1].Meta
}

// row is a source.Row. Numbers are those of texts, but for the lines.
type row struct {
	Line    int    `json:"line"`
	File    int    `json:"file,omitempty"`
	At      int    `json:"at"` // the line in the file
	ID      int    `json:"id,omitempty"`
	Text    int    `json:"text,omitempty"`
	Label   int    `json:"label,omitempty"`
	Context int    `json:"context,omitempty"`
	Gold    []int  `json:"gold,omitzero"`
	Grades  floats `json:"grades,omitempty"`
	Parent  int    `json:"parent,omitempty"` // of Trace
	State   int    `json:"state,omitempty"`
	Meta    int    `json:"meta,omitempty"`
	Fields  []int  `json:"fields,omitzero"`
	Err     *fault `json:"err,omitempty"`
}

func (w *writer) row(r source.Row) row {
	out := row{
		Line: r.Line, ID: w.text(r.ID), Text: w.text(r.Text), Label: w.text(r.Label), Context: w.text(r.Context),
		Parent: w.text(r.Trace.Parent), State: w.text(r.Trace.State), Meta: w.meta(r.Meta), Fields: w.fields(r.Fields), Err: w.fault(r.Err),
	}
	file, at := r.Place()
	out.File, out.At = w.text(file), at
	out.Gold, out.Grades = w.gold(r.Gold)
	return out
}

func (r *reader) row(in row) source.Row {
	out := source.Row{
		Line: in.Line, ID: r.text(in.ID), Text: r.text(in.Text), Label: r.text(in.Label), Context: r.text(in.Context),
		Gold:  r.gold(in.Gold, in.Grades),
		Trace: sdk.Trace{Parent: r.text(in.Parent), State: r.text(in.State)}, Meta: r.meta(in.Meta), Fields: r.fields(in.Fields), Err: r.fault(in.Err),
	}
	return out.At(r.text(in.File), in.At)
}

// gold are passages: of each its quote, how many ids it has (-1: nil), and these; with the
// grades.
func (w *writer) gold(all []source.Gold) (list []int, grades floats) {
	if all == nil {
		return nil, nil
	}
	list = []int{}
	for _, g := range all {
		n := len(g.IDs)
		if g.IDs == nil {
			n = -1
		}
		list = append(list, w.text(g.Quote), n)
		for _, id := range g.IDs {
			list = append(list, w.text(id))
		}
		grades = append(grades, floatsOf(g.Grade)...)
	}
	return list, grades
}

func (r *reader) gold(list []int, grades floats) []source.Gold {
	if list == nil {
		return nil
	}
	all := []source.Gold{}
	for len(list) > 0 {
		if len(list) < 2 || list[1] > len(list)-2 || list[1] < -1 {
			r.fail("a gold passage is cut off")
			return nil
		}
		g := source.Gold{Quote: r.text(list[0])}
		n := list[1]
		list = list[2:]
		if n >= 0 {
			g.IDs = make([]string, n)
			for i := range g.IDs {
				g.IDs[i] = r.text(list[i])
			}
			list = list[n:]
		}
		all = append(all, g)
	}
	for i, grade := range r.numbers(grades, len(all)) {
		all[i].Grade = grade
	}
	return all
}

// same reports whether two slices are the same memory, or are both nil.
func same[T any](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b) && (a == nil) == (b == nil)
	}
	return len(a) == len(b) && &a[0] == &b[0]
}

// Metadata and fields are lists of numbers, three for each value: those of the texts of its
// name and its value, and its type between them.
const (
	null = iota
	no
	yes
	text
	float    // as strconv has it, so that it may be none
	number   // json.Number
	document // json.RawMessage
)

func (w *writer) value(name string, value any) (all [3]int) {
	all[0] = w.text(name)
	kind, as := null, ""
	switch v := value.(type) {
	case nil:
	case bool:
		if kind = no; v {
			kind = yes
		}
	case string:
		kind, as = text, v
	case float64:
		kind, as = float, strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		kind, as = number, string(v)
	case json.RawMessage:
		kind, as = document, string(v)
	default: // nothing that racflow reads; outputs have it as JSON
		b, err := json.Marshal(value)
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("%q cannot be sent to another machine: %w", name, err)
		}
		kind, as = document, string(b)
	}
	all[1], all[2] = kind, w.text(as)
	return all
}

// value is that of three numbers.
func (r *reader) value(from []int) (name string, value any) {
	name, as := r.text(from[0]), r.text(from[2])
	switch from[1] {
	case null:
	case no, yes:
		value = from[1] == yes
	case text:
		value = as
	case float:
		x, err := strconv.ParseFloat(as, 64)
		if err != nil {
			r.fail("%q is no number", as)
		}
		value = x
	case number:
		value = json.Number(as)
	case document:
		value = json.RawMessage(as)
	default:
		r.fail("there is no type %d", from[1])
	}
	return name, value
}

func (w *writer) fields(fields []source.Field) []int {
	return flat(fields, func(out []int, f source.Field) []int {
		one := w.value(f.Name, f.Value)
		return append(out, one[:]...)
	})
}

func (r *reader) fields(from []int) []source.Field {
	return unflat(r, "fields", from, 3, func(one []int) source.Field {
		name, value := r.value(one)
		return source.Field{Name: name, Value: value}
	})
}
