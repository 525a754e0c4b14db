package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
)

// TestEveryByte changes, drops and repeats each byte of sealed texts.
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
		if !journal.Sealed(text) {
			t.Errorf("%s: %q does not count as whole", name, text)
		}
		for at := range text {
			for _, changed := range [][]byte{
				append(append(append([]byte{}, text[:at]...), text[at]^1), text[at+1:]...),
				append(append([]byte{}, text[:at]...), text[at+1:]...),
				append(append(append([]byte{}, text[:at]...), text[at]), text[at:]...),
			} {
				if journal.Sealed(changed) {
					t.Errorf("%s: %q counts as whole", name, changed)
				}
			}
		}
	}
	for _, text := range []string{"", "\n", "{}\n", `{"line":3,"sum":"0000"}` + "\n", `{"line":3,"sum":"0000000g"}` + "\n"} {
		if journal.Sealed([]byte(text)) {
			t.Errorf("%q counts as whole", text)
		}
	}
}
