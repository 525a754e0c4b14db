package progress

import (
	"errors"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestEnded(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		want CallDone
	}{
		"done":                 {nil, CallDone{}},
		"failed":               {no, CallDone{Err: no}},
		"rows":                 {sdk.RowErrors{1: no, 4: no}, CallDone{RowErrors: 2}},
		"later":                {&sdk.Pending{Handle: "x"}, CallDone{}},
		"some later, one none": {sdk.RowErrors{0: &sdk.Pending{Handle: "x"}, 1: no}, CallDone{RowErrors: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CallEnded(c.err); got != c.want {
				t.Errorf("it is %+v, want %+v", got, c.want)
			}
		})
	}
}
