package packet_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// batch makes rows and what became of them. Most results say of their rows what the rows say,
// as those of a run do.
func (f *filler) batch(n int) ([]source.Row, run.Answers) {
	rows, a := make([]source.Row, n), run.Answers{}
	f.of(reflect.ValueOf(&a).Elem())
	a.Results, a.Left, a.Bills = make([]outcome.Result, n), nil, nil
	f.of(reflect.ValueOf(&rows).Elem().Slice(0, n).Index(0))
	for i := range rows {
		f.of(reflect.ValueOf(&rows[i]).Elem())
		if f.IntN(10) == 0 && !f.full {
			if a.Left == nil {
				a.Left, a.Bills = map[int]error{}, map[int]outcome.Bill{}
			}
			bill := outcome.Bill{}
			f.of(reflect.ValueOf(&bill).Elem())
			a.Left[i], a.Bills[i] = f.fault(), bill
			continue
		}
		r := &a.Results[i]
		f.of(reflect.ValueOf(r).Elem())
		if len(r.Lists) > 0 && f.IntN(2) == 0 {
			r.Candidates = r.Lists[len(r.Lists)-1].Candidates
		}
		if f.IntN(5) > 0 {
			f.aboutRow(r, rows[i])
		}
	}
	return rows, a
}

func (f *filler) aboutRow(r *outcome.Result, row source.Row) {
	r.Line, r.ID, r.Text, r.Expected, r.Gold, r.Fields = row.Line, row.ID, row.Text, row.Label, row.Gold, row.Fields
	if row.ID == "" {
		r.ID = fmt.Sprint(row.Line)
	}
	r.File, r.FileLine = "", 0
	if file, line := row.Place(); file != "" {
		r.File, r.FileLine = file, line
	}
}

func sent(t testing.TB, rows []source.Row, a run.Answers) ([]source.Row, run.Answers) {
	t.Helper()
	data := must.Get(packet.EncodeAnswers(rows, a))(t)
	gotRows, got, err := packet.DecodeAnswers(data)
	if err != nil {
		t.Fatal(err)
	}
	return gotRows, got
}

// hashed are answers with the hashes of their prompts, which is what arrives.
func hashed(a run.Answers) run.Answers {
	a.Results = slices.Clone(a.Results)
	for i := range a.Results {
		prompts := a.Results[i].Prompts
		a.Results[i].Prompts = slices.Clone(prompts)
		for j := range prompts {
			a.Results[i].Prompts[j] = outcome.Prompted{Stage: prompts[j].Stage, Hashes: journal.Hashes(prompts[j])}
		}
	}
	return a
}

// TestAnswers sends random answers there and back.
func TestAnswers(t *testing.T) {
	for seed := range uint64(120) {
		f := &filler{Rand: rand.New(rand.NewPCG(seed, 1)), full: seed%3 == 0}
		rows, a := f.batch(1 + f.IntN(12))
		gotRows, got := sent(t, rows, a)
		if d := differ(rows, gotRows); d != "" {
			t.Fatalf("seed %d: a row: %s", seed, d)
		}
		if d := differ(hashed(a), got); d != "" {
			t.Fatalf("seed %d: answers: %s", seed, d)
		}
		// What has arrived travels on unchanged.
		if _, again := sent(t, gotRows, got); differ(got, again) != "" {
			t.Fatalf("seed %d: the second time: %s", seed, differ(got, again))
		}
	}
}

func TestOrder(t *testing.T) {
	for seed := range uint64(100) {
		f := &filler{Rand: rand.New(rand.NewPCG(seed, 2)), full: seed%3 == 0}
		rows, _ := f.batch(1 + f.IntN(12))
		want := run.Order{Rows: rows, Pass: run.Pass(seed % 3)}
		data := must.Get(packet.EncodeOrder(want))(t)
		got := must.Get(packet.DecodeOrder(data))(t)
		if d := differ(want, got); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

// behind are the fields that do not travel; see doc.go. Every other one does.
var behind = map[string]bool{
	"sdk.Prompt":    true, // the hash does
	"sdk.Error.Err": true,
}

// TestEveryField sends values in which a single field is set, each in turn: a field that is
// new and does not travel fails.
func TestEveryField(t *testing.T) {
	f := &filler{Rand: rand.New(rand.NewPCG(7, 9)), full: true, finite: true}
	n := 0
	single(f, reflect.TypeFor[outcome.Result](), "Result", func(path string, v reflect.Value) {
		n++
		want := run.Answers{Results: []outcome.Result{v.Interface().(outcome.Result)}}
		_, got := sent(t, make([]source.Row, 1), want)
		if d := differ(hashed(want), got); d != "" || told(want) == "" {
			t.Errorf("%s does not travel: %s", path, d)
		}
	})
	single(f, reflect.TypeFor[source.Row](), "Row", func(path string, v reflect.Value) {
		n++
		want := []source.Row{v.Interface().(source.Row)}
		got, _ := sent(t, want, run.Answers{})
		if d := differ(want, got); d != "" || told(want) == "" {
			t.Errorf("%s does not travel: %s", path, d)
		}
	})
	single(f, reflect.TypeFor[run.Answers](), "Answers", func(path string, v reflect.Value) {
		n++
		want := v.Interface().(run.Answers)
		if want.Results != nil {
			return // above
		}
		for at, of := range want.Left {
			delete(want.Left, at)
			want.Left[0] = of
		}
		for at, of := range want.Bills {
			delete(want.Bills, at)
			want.Bills[0] = of
		}
		_, got := sent(t, make([]source.Row, 1), want)
		if d := differ(want, got); d != "" || told(want) == "" {
			t.Errorf("%s does not travel: %s", path, d)
		}
	})
	if n < 90 {
		t.Errorf("%d fields were looked at", n)
	}
}

// single calls each with a value of a type for each of its fields, which alone is set: those of
// structs in it, in slices, maps and pointers, too.
func single(f *filler, typ reflect.Type, path string, each func(string, reflect.Value)) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		at := path + "." + field.Name
		if !field.IsExported() {
			if at == "Row.before" { // of At
				each(at, reflect.ValueOf(source.Row{Line: 7}.At("f", 3)))
				continue
			}
			each(at+", which is not exported", reflect.New(typ).Elem())
			continue
		}
		whole := func(v reflect.Value) {
			out := reflect.New(typ).Elem()
			out.Field(i).Set(v)
			each(at, out)
		}
		inner := field.Type
		wrap := func(v reflect.Value) reflect.Value { return v }
		switch inner.Kind() {
		case reflect.Slice:
			inner = inner.Elem()
			wrap = func(v reflect.Value) reflect.Value { return reflect.Append(reflect.Zero(field.Type), v) }
		case reflect.Map:
			inner = inner.Elem()
			wrap = func(v reflect.Value) reflect.Value {
				m := reflect.MakeMap(field.Type)
				m.SetMapIndex(reflect.Zero(field.Type.Key()), v)
				return m
			}
		}
		if inner.Kind() == reflect.Pointer {
			outer := wrap
			inner = inner.Elem()
			wrap = func(v reflect.Value) reflect.Value {
				p := reflect.New(v.Type())
				p.Elem().Set(v)
				return outer(p)
			}
		}
		name := strings.TrimPrefix(inner.String(), "*")
		if inner.Kind() == reflect.Struct && !behind[name] && name != "time.Time" && name != "source.Field" && name != "outcome.Failure" {
			single(f, inner, at, func(path string, v reflect.Value) {
				out := reflect.New(typ).Elem()
				out.Field(i).Set(wrap(v))
				each(path, out)
			})
			continue
		}
		v := reflect.New(field.Type).Elem()
		for v.IsZero() || v.Kind() == reflect.Map && v.Len() == 0 {
			f.of(v)
		}
		whole(v)
	}
}

// TestTrim drops what nobody reads.
func TestTrim(t *testing.T) {
	passage := sdk.Candidate{ID: "a", Text: "prose", Label: "x", Context: "of", Meta: sdk.Meta{"path": "p"}, Score: 1, Dense: 2, Lexical: 3}
	bare := sdk.Candidate{ID: "a", Score: 1, Dense: 2, Lexical: 3}
	many := []sdk.Candidate{passage, passage}
	r := outcome.Result{
		Answer: "x", Votes: []outcome.Vote{{Answer: "x"}}, Candidates: many, Lists: []outcome.List{{Stage: "retrieve.a", Candidates: many, Whole: true}, {Stage: "rerank.b", Candidates: many}},
		Citations: []outcome.Citation{{Number: 1, Passage: passage}}, Prompts: []outcome.Prompted{{Stage: "p"}}, Requests: []outcome.Request{{Voter: "v"}},
		Rules: []outcome.Rule{{Rule: "when"}}, Retries: []outcome.Retry{{Times: 1}}, Failure: nil,
	}
	flagged, found := r, r
	flagged.Flagged, found.RetrievalOnly = true, true
	given := run.Answers{Results: []outcome.Result{r, flagged, found}, Distributions: []string{"v"}}
	before := told(given)
	cited := []outcome.Citation{{Number: 1, Passage: sdk.Candidate{ID: "a", Label: "x", Meta: sdk.Meta{"path": "p"}, Score: 1, Dense: 2, Lexical: 3}}}
	seen := r
	seen.Candidates, seen.Citations, seen.Lists = nil, cited, []outcome.List{{Stage: "retrieve.a", Candidates: []sdk.Candidate{bare}, Whole: true}, {Stage: "rerank.b", Candidates: []sdk.Candidate{bare, bare}}}
	unseen := outcome.Result{Answer: "x", Votes: r.Votes, Citations: cited}
	of := func(from, to outcome.Result) outcome.Result {
		to.Flagged, to.RetrievalOnly, to.Candidates = from.Flagged, from.RetrievalOnly, nil
		if to.RetrievalOnly {
			to.Candidates = from.Candidates
			if to.Lists != nil {
				to.Lists = []outcome.List{to.Lists[0], {Stage: "rerank.b", Candidates: many}} // they have their texts anyway
			}
		}
		return to
	}
	for _, test := range []struct {
		keep journal.Keep
		want []outcome.Result
	}{
		{journal.KeepAll, []outcome.Result{of(r, seen), of(flagged, seen), of(found, seen)}},
		{journal.KeepNotable, []outcome.Result{of(r, unseen), of(flagged, seen), of(found, unseen)}},
	} {
		got := packet.Trim(given, test.keep, false)
		if d := differ(run.Answers{Results: test.want, Distributions: given.Distributions}, got); d != "" {
			t.Errorf("%s: %s", test.keep, d)
		}
		if d := differ(given, packet.Trim(given, test.keep, true)); d != "" {
			t.Errorf("%s, with lists: %s", test.keep, d)
		}
	}
	if told(given) != before {
		t.Error("the given answers were changed")
	}
}
