package sdktest

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/remote"
)

// Stage checks one stage, opened with a config that is a JSON object.
func Stage(t *testing.T, stage sdk.Stage, config string, opts ...Option) {
	t.Helper()
	run(t, stage, config, conformance.Checks(stage), opts)
}

// run runs checks and complains of what was left out and does not exist.
func run(t *testing.T, stage sdk.Stage, config string, checks []conformance.Check, opts []Option) {
	t.Helper()
	o := conformance.NewOptions()
	o.Short = testing.Short()
	for _, set := range opts {
		set(t, o)
	}
	t.Cleanup(func() { // after the subtests, some of which may run beside each other
		for _, path := range unmet(o) {
			t.Errorf("%q is left out, but there is no such subtest", path)
		}
	})
	conformance.Run(tester{t, o.Parallel}, &conformance.Subject{Stage: stage, Config: config, Start: inMemory(stage), Options: o}, checks)
}

// tester is a testing.T as the suite wants it.
type tester struct {
	*testing.T
	parallel bool // its subtests run beside each other
}

func (t tester) Run(name string, check func(conformance.T)) bool {
	return t.T.Run(name, func(sub *testing.T) {
		if t.parallel {
			sub.Parallel()
		}
		check(tester{T: sub})
	})
}

// unmet lists what was left out and does not exist, where all subtests ran: the
// command line may have chosen among them.
func unmet(o *conformance.Options) []string {
	chosen := slices.ContainsFunc([]string{"test.run", "test.skip"}, func(name string) bool {
		f := flag.Lookup(name)
		return f != nil && strings.Contains(f.Value.String(), "/")
	})
	if chosen {
		return nil
	}
	return o.Unmet()
}

// Open runs a stage behind a gRPC server in memory, as its process would, and
// returns the engine's end. It ends with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*remote.Stage, error) {
	t.Helper()
	p, err := start(t.Context(), stage, setup, config, t.Output())
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	return p.Stage, nil
}

// StateDir returns the folder that the engine gives to a process of a stage: below dir, with
// what it has learnt, where it is an embedder that fits; else dir itself.
func StateDir(t testing.TB, stage sdk.Stage, dir string, state []byte) string {
	t.Helper()
	if stage.Kind != sdk.KindEmbed || !stage.Fits {
		return dir
	}
	dir, err := remote.StateDir(dir, state)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
