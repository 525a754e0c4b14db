package units

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDecidedMeanwhile: a decision that is made while the file is read makes a later look see that
// it has changed.
func TestDecidedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	const rows = `{"text":"a","label":"x"}` + "\nno JSON\n"
	put := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(rows)
	d, err := readDecided(path, func(InvalidRow) { put(rows + `{"text":"b","label":"x"}` + "\n") })
	if err != nil || len(d.rows) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if now, err := digestOfDecisions(path); err != nil || now == d.digest {
		t.Errorf("what was read without the new decision passes for what the file has now: %v", err)
	}
}
