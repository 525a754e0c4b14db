package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// said is a test that records its errors.
type said struct {
	testing.TB
	text string
}

func (s *said) Helper() {}

func (s *said) Errorf(format string, args ...any) { s.text += fmt.Sprintf(format, args...) }

// A stage whose output changes must raise its revision. A stage with a new revision must give the new hash.
func TestCompare(t *testing.T) {
	at := func(revision string) sdk.Stage {
		return sdk.ElectStage("e", "", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return nil, nil }, sdk.Revision(revision))
	}
	out := []float64{.5, 1. / 3}
	want := "1 " + hash(t, out)
	for _, test := range []struct {
		name  string
		stage sdk.Stage
		out   any
		want  string
	}{
		{"the same", at("1"), out, ""},
		{"but for the last bits", at("1"), []float64{.5, .33333333}, ""},
		{"another output", at("1"), []float64{.5, .3}, "raise revision"},
		{"another output and revision", at("2"), []float64{.5, .3}, `write "2 `},
		{"another revision alone", at("2"), out, `write "2 `},
	} {
		s := &said{TB: t}
		if Compare(s, test.stage, test.out, want); test.want == "" && s.text != "" || !strings.Contains(s.text, test.want) {
			t.Errorf("%s: it says %q, want %q", test.name, s.text, test.want)
		}
	}
}
