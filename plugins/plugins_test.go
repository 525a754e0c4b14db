package plugins_test

import (
	"testing"

	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
)

func TestNamesAreUnique(t *testing.T) {
	type use struct {
		kind sdk.Kind
		name string
	}
	seen := map[use]bool{}
	for _, s := range plugins.All() {
		u := use{s.Kind, s.Name}
		if s.Name == "" || seen[u] {
			t.Errorf("two stages, or a nameless one, for use = %q of kind %s", s.Name, s.Kind)
		}
		seen[u] = true
	}
}

// What knowledge and runs depend on is the revision of every stage that makes something;
// stores keep what they get.
func TestStagesHaveARevision(t *testing.T) {
	for _, s := range plugins.All() {
		if s.Kind != sdk.KindStore && s.Fingerprint(nil) == "" {
			t.Errorf("%s %s has no sdk.Revision", s.Kind, s.Name)
		}
	}
}
