package conformance

import (
	"testing"

	"github.com/racflow/racflow/sdk/wire"
)

// The suite passes what it promises: whole documents, each once, cut at characters.
func TestPassagesOfTheSuite(t *testing.T) {
	all := passages()
	seen, several := map[string]bool{}, 0
	for _, part := range byDocument(all) {
		lo, hi := part[0], part[1]
		if id := all[lo].Document.ID; seen[id] {
			t.Errorf("document %s comes twice", id)
		}
		seen[all[lo].Document.ID] = true
		if hi-lo > 1 {
			several++
		}
	}
	if len(seen) < 15 || several < 8 || len(all) > 200 {
		t.Errorf("%d documents, %d of several passages, %d passages", len(seen), several, len(all))
	}
	if _, err := wire.EncodePassages(all); err != nil {
		t.Error(err)
	}
}
