package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

// TestEveryByte changes, drops and repeats each byte of what was sealed.
func TestEveryByte(t *testing.T) {
	compact := journal.SealLine([]byte("before"+`{"line":3,"answer":"é \"sum\""}`+"\n"), len("before"))[len("before"):]
	indented, err := json.MarshalIndent(map[string]any{"id": "run-000001", "stages": []string{}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"line": compact, "file": journal.SealFile(indented)} {
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil || len(object["sum"].(string)) != 8 {
			t.Fatalf("%s: %q is %v, %v", name, text, object, err)
		}
		if got := journal.CheckSeal(text); got != journal.SealWhole {
			t.Errorf("%s: %q is %d", name, text, got)
		}
		for at := range text {
			for _, changed := range [][]byte{
				append(append(append([]byte{}, text[:at]...), text[at]^1), text[at+1:]...),
				append(append([]byte{}, text[:at]...), text[at+1:]...),
				append(append(append([]byte{}, text[:at]...), text[at]), text[at:]...),
			} {
				if journal.CheckSeal(changed) == journal.SealWhole {
					t.Errorf("%s: %q counts as whole", name, changed)
				}
			}
		}
	}
	for _, text := range []string{"", "\n", "{}\n", `{"line":3,"sum":"0000"}` + "\n"} {
		if got := journal.CheckSeal([]byte(text)); got != journal.Unsealed {
			t.Errorf("%q is %d", text, got)
		}
	}
	if got := journal.CheckSeal([]byte(`{"line":3,"sum":"0000000g"}` + "\n")); got != journal.SealChanged {
		t.Errorf("a checksum that is no number: %d", got)
	}
}
