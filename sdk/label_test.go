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
