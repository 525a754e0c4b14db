package definition_test

import (
	"testing"

	"github.com/racflow/racflow/engine/cluster/definition"
)

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 2000 {
		id := definition.NewID()
		if !definition.IsID(id) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
	for text, want := range map[string]bool{"k3v9q2": true, "newest": false, "run-000001": false, "": false, "k3": false, "3kv9q2": false, "k3v9q2.": false, "K3V9Q2": false} {
		if definition.IsID(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
