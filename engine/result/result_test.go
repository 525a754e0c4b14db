package result

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestAnswerJSON(t *testing.T) {
	for answer, want := range map[Answer]string{"": "null\n", "a <b> & \"c\"": `"a <b> & \"c\""` + "\n"} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(answer); err != nil || b.String() != want {
			t.Errorf("%q: %s, %v", answer, b.String(), err)
		}
	}
}

func TestFieldsReadBack(t *testing.T) {
	for _, fields := range []Fields{
		nil, {}, {{Name: "b", Value: "<x>"}, {Name: "a", Value: json.Number("1.50")}, {Name: "", Value: nil}, {Name: "t", Value: true}, {Name: "n", Value: json.RawMessage(`{"x":[1]}`)}},
	} {
		text, err := json.Marshal(Result{Fields: fields})
		must.Do(t, err)
		var r Result
		must.Do(t, json.Unmarshal(text, &r))
		if len(fields) == 0 {
			fields = nil
		}
		if d := cmp.Diff(fields, r.Fields); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	for _, bad := range []string{`7`, `[1]`, `{"a"`} {
		if err := new(Fields).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
