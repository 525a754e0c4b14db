package plugins

import (
	"os"
	"strings"
	"testing"
)

// TestDocumented checks that the reference names every stage and argument.
func TestDocumented(t *testing.T) {
	reference, err := os.ReadFile("../pipelines/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range All() {
		names := []string{s.Name}
		for _, a := range s.Arguments {
			names = append(names, a.Name)
		}
		for _, name := range names {
			if !strings.Contains(string(reference), "`"+name+"`") {
				t.Errorf("pipelines/README.md does not name %q of %s %s", name, s.Kind, s.Name)
			}
		}
	}
}
