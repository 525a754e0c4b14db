package sealed_test

import (
	"encoding/json"
	"testing"

	"github.com/racflow/racflow/engine/journal/sealed"
)

// TestEveryByte changes, drops and repeats each byte of what was sealed.
func TestEveryByte(t *testing.T) {
	compact := sealed.Line([]byte("before"+`{"line":3,"answer":"é \"sum\""}`+"\n"), len("before"))[len("before"):]
	indented, err := json.MarshalIndent(map[string]any{"id": "run-000001", "stages": []string{}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"line": compact, "file": sealed.File(indented)} {
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil || len(object["sum"].(string)) != 8 {
			t.Fatalf("%s: %q is %v, %v", name, text, object, err)
		}
		if got := sealed.Check(text); got != sealed.Whole {
			t.Errorf("%s: %q is %d", name, text, got)
		}
		for at := range text {
			for _, changed := range [][]byte{
				append(append(append([]byte{}, text[:at]...), text[at]^1), text[at+1:]...),
				append(append([]byte{}, text[:at]...), text[at+1:]...),
				append(append(append([]byte{}, text[:at]...), text[at]), text[at:]...),
			} {
				if sealed.Check(changed) == sealed.Whole {
					t.Errorf("%s: %q counts as whole", name, changed)
				}
			}
		}
	}
	for _, text := range []string{"", "\n", "{}\n", `{"line":3,"sum":"0000"}` + "\n"} {
		if got := sealed.Check([]byte(text)); got != sealed.Without {
			t.Errorf("%q is %d", text, got)
		}
	}
	if got := sealed.Check([]byte(`{"line":3,"sum":"0000000g"}` + "\n")); got != sealed.Changed {
		t.Errorf("a checksum that is no number: %d", got)
	}
}
