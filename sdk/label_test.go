package sdk_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
)

func TestLabelForm(t *testing.T) {
	one, many, tree := sdk.LabelForm{}, sdk.LabelForm{Many: true}, sdk.LabelForm{Levels: "/"}
	for _, c := range []struct {
		name      string
		got, want []string
	}{
		{"one label", one.Split("a; b"), []string{"a; b"}},
		{"no label", many.Split(""), nil},
		{"a set", many.Split("a; b"), []string{"a", "b"}},
		{"joined", many.Split(sdk.JoinLabels([]string{"b", "a", "b"})), []string{"a", "b"}},
		{"no levels", one.Path("a/b"), []string{"a/b"}},
		{"levels", tree.Path("a/b/c"), []string{"a", "a/b", "a/b/c"}},
		{"a top level", tree.Path("a"), []string{"a"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	for answer, holds := range map[string]bool{"a": true, "a/b": true, "a/b/c": true, "a/bc": false, "a/b/c/d": false, "": false, "b": false} {
		if got := tree.Holds(answer, "a/b/c"); got != holds {
			t.Errorf("%q holds: %v, want %v", answer, got, holds)
		}
	}
	if one.Holds("a", "a/b") || !many.Holds("a; b", "a; b") || many.Holds("a", "a; b") {
		t.Error("an answer without levels is right if it is the same")
	}
	given := []string{"b", "a"}
	if sdk.JoinLabels(given); !slices.Equal(given, []string{"b", "a"}) {
		t.Errorf("the labels that were joined changed: %q", given)
	}
}

func TestFoldLabel(t *testing.T) {
	for _, same := range [][]string{
		{"Card Lost", "card_lost", "card-lost", " card   lost ", "card\u00a0lost", "card\u200b lost\ufeff", "card - lost", "card\u2010lost", "ＣＡＲＤ lost"},
		{"Rückgabe", "Ru\u0308ckgabe", "RÜCKGABE", "Rück\u00adgabe"}, {"ΟΔΟΣ", "οδος", "οδοσ"},
		{"Q&A", "q & a", "Q &A"}, {"-1", " -1", "\u22121", "- 1"}, {"don't know", "don’t know"}, {"1-2", "1 - 2", "1\u20132"}, {"covid-19", "Covid 19"}, {"❤\ufe0f", "❤"},
	} {
		for _, label := range same[1:] {
			if a, b := sdk.FoldLabel(same[0]), sdk.FoldLabel(label); a != b {
				t.Errorf("%+q and %+q are %q and %q", same[0], label, a, b)
			}
		}
	}
	apart := []string{
		"1", "-1", "+1", "0", "11", "1.1", "1,1", "1-1", "1 1", "1_1", "1%", "<1", ">1", "1/2", "12", "a", "A-", "A+", "A*", "A.", "c", "c#", "c++", ".net", "net", "R&D", "RD", "a/b", "ab", "a b",
		"resign", "re-sign", "film A- good", "film A good", "at -1", "at 1", "50 €", "50 $", "no", "no!", "no?", "#1", "@a", "²", "2", "ä", "\u0430", "_a", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
	}
	by := map[string]string{}
	for _, label := range apart {
		folded := sdk.FoldLabel(label)
		if other, ok := by[folded]; ok {
			t.Errorf("%q and %q are both %q", other, label, folded)
		}
		by[folded] = label
		if again := sdk.FoldLabel(folded); again != folded && sdk.FoldLabel(again) != again {
			t.Errorf("%q becomes %q, and that %q", label, folded, again)
		}
	}
}

func TestCanonical(t *testing.T) {
	for label, want := range map[string]string{
		"\u200b Ru\u0308ckgabe\u00a0\ufeff": "Rückgabe", "a  b": "a  b", "A": "A", " \u200b": "", "a\u200db": "a\u200db", "\u3000x\u2009": "x",
	} {
		if got := (sdk.LabelForm{}).Canonical(label); got != want {
			t.Errorf("%+q is read as %+q, want %+q", label, got, want)
		}
	}
	if got := (sdk.LabelForm{Many: true}).Canonical(" b\u00a0; a\u200b; b; "); got != "a; b" {
		t.Errorf("a set is read as %+q", got)
	}
}
