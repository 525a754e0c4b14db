package sdktest

import (
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// Foreign makes collections as somebody else would, for Attached.
type Foreign struct {
	// Make makes a new collection with the rows, by another client than the stage's, and returns the
	// config, a JSON object, by which the stage attaches it. All of a row but its hash is there
	// to be found again: its id (a decimal number, which fits keys of either type), text, context,
	// label, metadata (a string, numbers that a float32 holds exactly, a bool) and vector.
	Make func(t testing.TB, rows []sdk.Entry) (config string)
	// Look says all of that collection that a write could change, as another client sees it: how
	// many rows it has, its fields, its indexes. It is compared with what it said before.
	Look func(t testing.TB, config string) string
}

// Attached checks a store with sdk.Attaches on collections that somebody else makes: their rows
// come back letter by letter, dense scores are cosines, filters select what sdk.Filter
// says, and nothing is written. Its subtests are below "attached".
func Attached(t *testing.T, stage sdk.Stage, foreign Foreign, opts ...Option) {
	t.Helper()
	if stage.Attaches == "" {
		t.Fatalf("stage %s does not say sdk.Attaches", stage.Name)
	}
	run(t, stage, "{}", conformance.AttachedChecks(foreign.in(t)), opts)
}

// in is the same with hooks whose failures are those of the check at hand.
func (f Foreign) in(t *testing.T) conformance.Foreign {
	return conformance.Foreign{
		Make: func(c conformance.T, rows []sdk.Entry) string { return f.Make(hook{t, c}, rows) },
		Look: func(c conformance.T, config string) string { return f.Look(hook{t, c}, config) },
	}
}
