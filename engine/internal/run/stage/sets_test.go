package stage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
)

func TestSingle(t *testing.T) {
	voted := []sdk.Answer{{Label: "a; b", Weight: .5}, {Label: "b", Weight: .3}, {Label: "c", Weight: .2}}
	want := []sdk.Answer{{Label: "b", Weight: .8}, {Label: "a", Weight: .5}, {Label: "c", Weight: .2}}
	if diff := cmp.Diff(want, single(sdk.LabelForm{Many: true}, voted)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(voted, single(sdk.LabelForm{}, voted)); diff != "" {
		t.Errorf("one label (-want +got):\n%s", diff)
	}
	near := []sdk.Answer{{Label: sdk.NoLabels, Weight: .6}, {Label: "a", Weight: .4}}
	want = []sdk.Answer{{Weight: .6}, {Label: "a", Weight: .4}}
	if diff := cmp.Diff(want, single(sdk.LabelForm{Many: true}, near)); diff != "" {
		t.Errorf("a set without labels (-want +got):\n%s", diff)
	}
	full := []sdk.Answer{{Label: "a; b", Weight: 1}, {Label: "b; c", Weight: 1, Reason: "no"}, {Label: "", Weight: 1}}
	want = []sdk.Answer{{Label: "a", Weight: 1}, {Label: "b", Weight: 1}, {Label: "b", Weight: 1, Reason: "no"}, {Label: "c", Weight: 1, Reason: "no"}}
	if diff := cmp.Diff(want, single(sdk.LabelForm{Many: true}, full[:2])); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if got := single(sdk.LabelForm{Many: true}, full); len(got) != 5 || got[4].Label != "" {
		t.Errorf("that no label fits is lost: %+v", got)
	}
}
