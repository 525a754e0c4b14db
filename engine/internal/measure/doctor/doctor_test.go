package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/source"
)

// of returns a set with a row for each text and label.
func of(t testing.TB, name string, quick bool, textsAndLabels ...string) *Set {
	t.Helper()
	var b strings.Builder
	b.WriteString("text\tlabel\n")
	for i := 0; i < len(textsAndLabels); i += 2 {
		fmt.Fprintf(&b, "%s\t%s\n", textsAndLabels[i], textsAndLabels[i+1])
	}
	return read(t, name, source.TSV, b.String(), quick)
}

func read(t testing.TB, name string, format source.Format, content string, quick bool) *Set {
	t.Helper()
	m := source.Mapping{ID: "id", Text: "text", Label: "label", Fields: !quick}
	r, err := source.Open("-", source.Form{Format: format}, m, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Read(name, name+".tsv", r, m, 0, quick, map[string]bool{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plenty has enough different rows of two labels that there are no findings.
func plenty(more ...string) (all []string) {
	for i := range 10 {
		word := strings.Repeat(string(rune('a'+i)), 3)
		all = append(all, word+" parcel not come", "order", word+" lost the card "+word, "card")
	}
	return append(all, more...)
}

// signed returns five different rows of each label.
func signed(labels ...string) (all []string) {
	for i := range 5 {
		for n, label := range labels {
			all = append(all, strings.Repeat(string(rune('a'+n)), 5)+" "+strings.Repeat(string(rune('a'+i)), 5), label)
		}
	}
	return all
}

// lines returns the findings, with the lines of their rows.
func lines(r Report) (all []string) {
	for _, f := range r.Findings {
		text := fmt.Sprintf("%s %s %d:", f.Severity, f.Check, f.Count)
		for _, p := range f.Rows {
			text += fmt.Sprintf(" %d", p.Line)
			if p.Proposal != "" {
				text += "->" + p.Proposal
			}
		}
		all = append(all, text)
	}
	return all
}

func TestLook(t *testing.T) {
	swapped := make([]string, 0, 80)
	for i := range 40 {
		swapped = append(swapped, []string{"order", "card"}[i%2], fmt.Sprint("text number ", i))
	}
	for _, c := range []struct {
		name             string
		knowledge, input []string
		want             []string
		quick            []string
	}{
		{name: "nothing", knowledge: plenty()},
		{name: "swapped columns", knowledge: swapped, want: []string{"error swapped 40: 2 3 4 5 6"}, quick: []string{"error swapped 40:"}},
		{
			name: "labels that are spelt in several ways", knowledge: plenty("one more thing", "Card", "another one here", "order"),
			want: []string{"error spelling 1: 22->card", "warning few 1: 22"}, quick: []string{"error spelling 1:"},
		},
		{name: "signs and digits", knowledge: signed("-1", "1", "A", "A-", ".net", "net", "1.1", "11", "R&D", "RD", "50%", "50")},
		{
			name: "blanks and accents", knowledge: signed("card\u00a0lost", "card lost", "Rückgabe", "Ru\u0308ckgabe"), quick: []string{"error spelling 5:"},
			want: []string{"error spelling 5: 2->card lost 6->card lost 10->card lost 14->card lost 18->card lost", "info written 1:"},
		},
		{
			name: "a label of the input that is spelt in another way", knowledge: plenty(), input: []string{"what else", "Order", "my card", "card"},
			want: []string{"error spelling 1: 2->order", "info unknown 1: 2"}, quick: []string{"error spelling 1:"},
		},
		{
			name: "labels that look alike", knowledge: plenty("one", "order.", "two", "“card”", "three", "1.", "four", "1"),
			want: []string{"warning lookalike 2: 22->order 23->card", "warning few 4: 22 23 24 25"},
		},
		{
			name: "letters of other scripts", knowledge: signed("paypal", "p\u0430ypal", "KEY", "\u039aEY", "нет", "net", "\u0441ор", "cop"), input: []string{"what else", "\u0440aypal", "more", "net"},
			want: []string{"info unknown 1: 2", "warning lookalike 16: 3->paypal 5->KEY 8->cop 11->paypal 13->KEY"},
		},
		{name: "labels of signs", knowledge: plenty("a", "c++", "b", "c", "c", "c++", "d", "c++", "e", "c++", "f", "c++", "g", "c", "h", "c", "i", "c", "j", "c")},
		{
			name: "contradiction", knowledge: plenty("what is  This", "order", "WHAT is this", "card"),
			want: []string{"error contradiction 2: 22 23"}, quick: []string{"error contradiction 2:"},
		},
		{name: "copies", knowledge: plenty("what is this", "order", "What is this", "order"), want: []string{"info copies 1: 22 23"}},
		{
			name: "forms of Unicode", knowledge: plenty("un café crème", "order", "un cafe\u0301 CRÈME", "order"),
			want: []string{"info copies 1: 22 23"},
		},
		{
			name: "nearly the same", knowledge: plenty("please tell me where it is", "order", "please tell me where it is?", "card"),
			want: []string{"warning near 1: 23"},
		},
		{name: "few examples", knowledge: plenty("zebra", "animal"), want: []string{"warning few 1: 22"}},
		{
			name: "test rows in the knowledge", knowledge: plenty(), input: []string{"AAA parcel not  come", "order", "something else", "card"},
			want: []string{"error leak 1: 2"}, quick: []string{"error leak 1:"},
		},
		{name: "without labels it does not matter", knowledge: plenty(), input: []string{"aaa parcel not come", "", "something else", ""}},
		{
			name: "test rows that are nearly in the knowledge", knowledge: plenty("please tell me where it is", "order"),
			input: []string{"please tell me where it is?", "order", "something else", "card"},
			want:  []string{"warning near_leak 1: 2"},
		},
		{name: "out of scope", knowledge: plenty(), input: []string{"hello", "greeting", "my card", "card"}, want: []string{"info unknown 1: 2"}},
		{
			name: "no label is known", knowledge: plenty(), input: []string{"hello", "1", "my card", "2"},
			want: []string{"error unknown 2: 2 3"}, quick: []string{"error unknown 2:"},
		},
		{name: "rows that cannot be used", knowledge: plenty("", "order"), want: []string{"warning invalid 1: 22"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, quick := range []bool{false, true} {
				o := Options{Knowledge: []Source{{Set: of(t, "k", quick, c.knowledge...)}}, Quick: quick}
				if c.input != nil {
					o.Input = of(t, "i", quick, c.input...)
				}
				r, err := Look(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				want, got := slices.Clone(c.want), lines(r)
				if quick {
					want = slices.Clone(c.quick)
				}
				slices.Sort(want)
				slices.Sort(got)
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("quick %v (-want +got):\n%s", quick, d)
				}
			}
		})
	}
}

// Errors come first, and a quick look reports at most three. TestDecided: input rows with people's
// decisions are in the knowledge, but are no leak. Rows that people changed are checked in their
// present form. A corrected copy has no decisions.
func TestDecided(t *testing.T) {
	k := read(t, "k", source.TSV, "id\ttext\tlabel\n1\twhere is it\torder\n2\tthe card went\torder\n3\tdrop me\torder\n", false)
	k.Join(read(t, "more", source.TSV, "id\ttext\tlabel\tfrom\n4\tthe card went\tcard\tmail\n", false))
	k.Revise(func(entry string) (Row, bool) {
		r, ok := map[string]Row{"2": {Text: "the card went", Label: "card"}, "3": {}}[entry]
		return r, ok
	})
	k.Decide([]Row{{Entry: "r-1", File: "reviewed.jsonl", Line: 1, Text: "Has it COME", Label: "order"}, {Entry: "r-2", File: "reviewed.jsonl", Line: 2, Text: "where is it", Label: "card"}})
	input := of(t, "input", false, "has it come", "order", "the card went", "card")
	report, err := Look(t.Context(), Options{Knowledge: []Source{{Set: k}}, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		if f.Check == "contradiction" || f.Check == "leak" || f.Check == "copies" {
			text := f.Check
			for _, p := range f.Rows {
				text += " " + p.Entry
			}
			got = append(got, text)
		}
	}
	if want := []string{"contradiction 1 r-2", "copies 2 4"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	var b strings.Builder
	p := Propose(k)
	if err := p.Write(&b, source.CSV); err != nil {
		t.Fatal(err)
	}
	want := "id,text,label,from,doctor_action,doctor_label,doctor_why\n" +
		"1,where is it,order,,review,card,\"the same text has the label \"\"card\"\" in reviewed.jsonl:2\"\n" +
		"2,the card went,card,,,,\n"
	if b.String() != want {
		t.Errorf("a corrected copy:\n%s", b.String())
	}
}

func TestOrder(t *testing.T) {
	rows := plenty("what is this", "order", "what is this", "card", "copy", "order", "copy", "order", "more", "Card", "aa", "x", "aa", "y")
	for _, quick := range []bool{false, true} {
		r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: of(t, "k", quick, rows...)}, {Set: of(t, "l", quick, rows...)}}, Input: of(t, "i", quick, rows...), Quick: quick})
		if err != nil || !r.Serious() {
			t.Fatal(r, err)
		}
		if !slices.IsSortedFunc(r.Findings, func(a, b Finding) int {
			return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
		}) {
			t.Errorf("%q", lines(r))
		}
		if quick && len(r.Findings) != 3 {
			t.Errorf("%q", lines(r))
		}
	}
}

func TestVotes(t *testing.T) {
	set := of(t, "k", false, plenty("the card is lost and gone", "order")...)
	var votes []VotedRow
	for _, r := range set.Rows {
		label := r.Label
		if strings.Contains(r.Text, "gone") {
			label = "card"
		}
		votes = append(votes, VotedRow{Text: r.Text, Label: r.Label, Votes: map[string]float64{label: .95, "other": .05}})
	}
	look := func(votes []VotedRow, err error) Report {
		r, failed := Look(t.Context(), Options{Knowledge: []Source{{Set: set, Votes: func(context.Context) ([]VotedRow, error) { return votes, err }}}})
		if failed != nil {
			t.Fatal(failed)
		}
		return r
	}
	if r := look(votes, nil); !slices.Equal(lines(r), []string{"warning suspect 1: 22->card"}) || r.Voted != 21 || r.Findings[0].Expected < .95 || !strings.Contains(r.Findings[0].Message, "; 100 % of these labels are expected to be wrong") {
		t.Errorf("%q, %d voted, %+v", lines(r), r.Voted, r.Findings)
	}
	if r := look(votes[10:], nil); len(r.Findings) > 0 {
		t.Errorf("of few rows: %q", lines(r))
	}
	if r := look(nil, errors.New("no model")); len(r.Findings) > 0 || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0], "no model") {
		t.Errorf("%+v", r)
	}
}

// An embedder that reads 300 bytes cuts only longer texts.
func TestCut(t *testing.T) {
	var rows []string
	for i := range 40 {
		rows = append(rows, fmt.Sprint(strings.Repeat(fmt.Sprintf("word%02d ", i), 1+2*i), i), "label")
	}
	asked := 0
	embed := func(_ context.Context, texts []string) (vectors [][]float32, _ error) {
		asked += len(texts)
		for _, text := range texts {
			v := make([]float32, 2)
			for i := range min(len(text), 300) {
				v[i%2] += float32(text[i]) * float32(i)
			}
			vectors = append(vectors, v)
		}
		return vectors, nil
	}
	set := of(t, "k", false, rows...)
	r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: set, Embed: embed}}})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, row := range set.Rows {
		if len(row.Text)*9/10 >= 300 {
			want++
		}
	}
	if at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "cut" }); at < 0 || r.Findings[at].Count != want || r.Findings[at].Rows[0].Line != 41 {
		t.Errorf("%q, want %d rows", lines(r), want)
	}
	if asked > 20 {
		t.Errorf("%d texts were embedded", asked)
	}
	r, err = Look(t.Context(), Options{Knowledge: []Source{{Set: set, Embed: func(context.Context, []string) ([][]float32, error) { return nil, errors.New("gone") }}}})
	if err != nil || len(r.Skipped) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDocuments(t *testing.T) {
	text := ""
	for i := range 40 {
		text += fmt.Sprintf("after %d seconds the gateway closes connection %d. ", i*7, i)
	}
	set := OfDocuments("k", "docs", func(yield func(string, string) bool) {
		_ = yield("a.md", text) && yield("b.md", strings.ToUpper(text)) && yield("c.md", text+"At most.") && yield("d.md", "another document altogether")
	})
	set.Refuse(Place{File: "e.pdf", Note: "it has no text"})
	r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: set}}, Input: of(t, "i", false, "how long does it wait", "")})
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s %s %d %s", f.Severity, f.Check, f.Count, f.Rows[0].File))
	}
	want := []string{"warning near 2 c.md", "warning copies 1 a.md", "warning invalid 1 e.pdf"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// TestHeldOut: rows held out of the knowledge are checked, too, and written unchanged, in the order of their file. A
// text that they share with the knowledge is a leak, not a copy. They do not count as rows of the knowledge.
func TestHeldOut(t *testing.T) {
	rows := plenty("misspelt", "Card", "a copy", "order", "A copy", "order", "nothing", "", "contrary", "card", "again", "order", "again", "order")
	var in, out []string
	for i := 0; i < len(rows); i += 2 {
		if i%4 == 0 {
			in = append(in, rows[i:i+2]...)
		} else {
			out = append(out, rows[i:i+2]...)
		}
	}
	set, all := of(t, "k", false, rows...), of(t, "k", false, rows...)
	held := map[int]bool{}
	set.Rows = slices.DeleteFunc(set.Rows, func(r Row) bool { held[r.Line] = r.Line%2 == 1; return held[r.Line] })
	set.Hold(all)
	input := of(t, "i", false, out...)
	r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: set}}, Input: input})
	if err != nil || r.Rows != len(in)/2 || r.Items != len(out)/2 {
		t.Fatalf("%v: %d rows and %d items, want %d and %d", err, r.Rows, r.Items, len(in)/2, len(out)/2)
	}
	got := strings.Join(lines(r), "; ")
	if !strings.Contains(got, "error spelling 1: 22->card") || !strings.Contains(got, "error leak 2:") || strings.Contains(got, "copies") {
		t.Error(got)
	}
	var b strings.Builder
	p := Propose(set)
	if err := p.Write(&b, source.CSV); err != nil || p.Removed > 0 {
		t.Fatal(p.Removed, err)
	}
	written := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	for i, line := range written {
		if !strings.HasPrefix(line, rows[2*i]+",") {
			t.Errorf("row %d is %q, want %q", i, line, rows[2*i])
		}
	}
	if len(written) != len(rows)/2 || !strings.Contains(b.String(), "misspelt,card,relabel,Card") || !strings.Contains(b.String(), "nothing,,,,") {
		t.Errorf("%d of %d rows:\n%s", len(written), len(rows)/2, b.String())
	}
}

func TestScriptsOfLabels(t *testing.T) {
	if n := utf8.RuneCountInString(confusable); n != len(latin) || 2*n != len(confusable) {
		t.Errorf("%d letters, and %d that they look like", n, len(latin))
	}
	r, err := Look(t.Context(), Options{Knowledge: []Source{{Set: of(t, "k", false, signed("paypal", "paypal", "p\u0430ypal")...)}}})
	if want := `"pаypal" (with а U+0430 Cyrillic) beside "paypal"`; err != nil || !strings.Contains(r.Findings[0].Message, want) {
		t.Errorf("%v: %+v, want %s", err, r.Findings, want)
	}
}
