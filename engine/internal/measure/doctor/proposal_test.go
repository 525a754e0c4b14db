package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/source"
)

const rowsToCorrect = "id\ttext\tlabel\tfrom\n" +
	"1\tMy card is lost\tcard_lost\tmail\n" +
	"2\tmy  CARD is lost\tcard_lost\tchat\n" +
	"3\tit was stolen\tCard Lost\t\n" +
	"4\twhere is my parcel\torder\t\n" +
	"5\twhere is my parcel\tcard_lost\t\n" +
	"6\tanother parcel, please\tcard_lost\t\n" +
	"7\tperhaps a parcel\tcard_lost\t\n" +
	"8\tas it was\torder\t\n" +
	"9\tas it was, nearly the same\torder\t\n"

func TestProposal(t *testing.T) {
	const why = "voters that have not seen it: order 0.90, its own label 0.01, 97 % likely wrong"
	const near = `nearly the same as k.tsv:9 "as it was", which has the label "order"`
	for _, c := range []struct {
		format source.Format
		want   string
	}{
		{source.TSV, "id\ttext\tlabel\tfrom\tdoctor_action\tdoctor_label\tdoctor_why\n" +
			"1\tMy card is lost\tcard_lost\tmail\t\t\t\n" +
			"3\tit was stolen\tcard_lost\t\trelabel\tCard Lost\tthe label is spelt \"card_lost\" in more rows\n" +
			"4\twhere is my parcel\torder\t\treview\tcard_lost\tthe same text has the label \"card_lost\" in k.tsv:6\n" +
			"5\twhere is my parcel\tcard_lost\t\treview\torder\tthe same text has the label \"order\" in k.tsv:5; " + why + "\n" +
			"6\tanother parcel, please\torder\t\trelabel\tcard_lost\t" + why + "\n" +
			"7\tperhaps a parcel\tcard_lost\t\treview\torder\tvoters that have not seen it: order 0.60, its own label 0.20, 60 % likely wrong\n" +
			"8\tas it was\torder\t\t\t\t\n" +
			"9\tas it was, nearly the same\torder\t\treview\tcard_lost\t" + near + "; voters that have not seen it: card_lost 0.95, its own label 0.01, 98 % likely wrong\n"},
		{source.CSV, "id,text,label,from,doctor_action,doctor_label,doctor_why\n" +
			"1,My card is lost,card_lost,mail,,,\n" +
			"3,it was stolen,card_lost,,relabel,Card Lost,\"the label is spelt \"\"card_lost\"\" in more rows\"\n" +
			"4,where is my parcel,order,,review,card_lost,\"the same text has the label \"\"card_lost\"\" in k.tsv:6\"\n" +
			"5,where is my parcel,card_lost,,review,order,\"the same text has the label \"\"order\"\" in k.tsv:5; " + why + "\"\n" +
			"6,\"another parcel, please\",order,,relabel,card_lost,\"" + why + "\"\n" +
			"7,perhaps a parcel,card_lost,,review,order,\"voters that have not seen it: order 0.60, its own label 0.20, 60 % likely wrong\"\n" +
			"8,as it was,order,,,,\n" +
			"9,\"as it was, nearly the same\",order,,review,card_lost,\"" + strings.ReplaceAll(near, `"`, `""`) + "; voters that have not seen it: card_lost 0.95, its own label 0.01, 98 % likely wrong\"\n"},
	} {
		s := read(t, "k", source.TSV, rowsToCorrect, false)
		s.suspected = []suspect{
			{Suspect{Label: "order", Share: .9, Self: .01, Wrong: .97, Relabel: true}, 4},
			{Suspect{Label: "order", Share: .9, Self: .01, Wrong: .97, Relabel: true}, 5},
			{Suspect{Label: "order", Share: .6, Self: .2, Wrong: .6}, 6},
			{Suspect{Label: "card_lost", Share: .95, Self: .01, Wrong: .98, Relabel: true}, 8},
		}
		s.disputed = map[int][]int{8: {7}} // a near copy has the other label
		var b strings.Builder
		p := Propose(s)
		if err := p.Write(&b, c.format); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, b.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.format, d)
		}
		if p.Relabelled != 2 || p.Marked != 4 || p.Removed != 1 {
			t.Errorf("%s: %d relabelled, %d to review, %d removed", c.format, p.Relabelled, p.Marked, p.Removed)
		}
	}
}

// A written proposal can be checked and proposed again, and JSON keeps its values.
func TestProposalOfJSON(t *testing.T) {
	rows := `{"text": "a\tb", "label": "x", "n": 12345678901234567890, "deep": {"k": [1, 2]}, "no": null}` + "\n" + `{"text": "c", "label": "x", "doctor_why": "old"}`
	want := `{"text":"a\tb","label":"x","n":12345678901234567890,"deep":{"k":[1,2]}}` + "\n" + `{"text":"c","label":"x"}` + "\n"
	for range 2 {
		var b strings.Builder
		if err := Propose(read(t, "k", source.JSONL, rows, false)).Write(&b, source.JSONL); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, b.String()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		rows = b.String()
	}
	p := Propose(read(t, "k", source.JSONL, rows, false))
	if err := p.Write(&strings.Builder{}, source.TSV); err == nil || !strings.Contains(err.Error(), "k.tsv:1: ") || !strings.Contains(err.Error(), ".jsonl") {
		t.Errorf("a tab in TSV: %v", err)
	}
	if err := p.Write(&strings.Builder{}, source.Parquet); err == nil {
		t.Error("Parquet is written")
	}
}

// Each doubt has all reasons, the worst severity, and other labels that may be right.
func TestDoubts(t *testing.T) {
	s := read(t, "k", source.TSV, rowsToCorrect, false)
	s.suspected = []suspect{{Suspect{Label: "order", Share: .9, Self: .01, Wrong: .97, Relabel: true}, 5}}
	s.disputed = map[int][]int{4: {8}}
	want := []Doubt{
		{Row: 1, Severity: Info, Why: []string{"a copy of k.tsv:2"}, Copy: true},
		{Row: 2, Severity: Error, Why: []string{`the label is spelt "card_lost" in more rows`}, Labels: []string{"card_lost"}, Relabel: "card_lost"},
		{Row: 3, Severity: Error, Why: []string{`the same text has the label "card_lost" in k.tsv:6`}, Labels: []string{"card_lost"}},
		{Row: 4, Severity: Error, Why: []string{
			`the same text has the label "order" in k.tsv:5`,
			`nearly the same as k.tsv:10 "as it was, nearly the same", which has the label "order"`,
		}, Labels: []string{"order"}},
		{Row: 5, Severity: Warning, Why: []string{"voters that have not seen it: order 0.90, its own label 0.01, 97 % likely wrong"}, Labels: []string{"order"}, Sure: .9, Relabel: "order"},
	}
	if d := cmp.Diff(want, Doubts(s)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	s.Rows[3].Reviewed = true
	if got := Doubts(s); len(got) != len(want)-1 || got[2].Row != 4 {
		t.Errorf("a row that was decided about is doubted: %+v", got)
	}
}
