package sdk

import "testing"

func TestCompleteConfig(t *testing.T) {
	for _, c := range []struct{ config, resolved, want string }{
		{"", "", ""},
		{`{"k":1}`, "", `{"k":1}`},
		{"", `{"precision":"half"}`, `{"precision":"half"}`},
		{`{"k":1,"precision":null}`, `{"precision":"half"}`, `{"k":1,"precision":"half"}`},
		{`{"precision":"single"}`, `{"precision":"half"}`, `{"precision":"single"}`},
	} {
		if got, err := CompleteConfig([]byte(c.config), []byte(c.resolved)); err != nil || string(got) != c.want {
			t.Errorf("%s with %s gives %s, %v; want %s", c.config, c.resolved, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{{"[]", "{}"}, {"{}", "[]"}} {
		if _, err := CompleteConfig([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
