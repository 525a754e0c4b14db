package observe

import (
	"errors"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestEnded(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		want Done
	}{
		"done":                 {nil, Done{}},
		"failed":               {no, Done{Err: no}},
		"rows":                 {sdk.RowErrors{1: no, 4: no}, Done{RowErrors: 2}},
		"later":                {&sdk.Pending{Handle: "x"}, Done{}},
		"some later, one none": {sdk.RowErrors{0: &sdk.Pending{Handle: "x"}, 1: no}, Done{RowErrors: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ended(c.err); got != c.want {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}
