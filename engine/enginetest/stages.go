package enginetest

import (
	"slices"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/wire"
)

// Stages are all stages of this package. The store keeps its collections in memory,
// by Setup.StateDir, for as long as the result is held.
func Stages() []sdk.Stage {
	return []sdk.Stage{Hashing(), Memory(), Neighbours(), Prototype(), Words(), Majority(), Soft(), First(), Weighted(), Witness(), Answer(), Chat()}
}

// Catalog offers stages to a pipeline file. It is a pipeline.Catalog.
type Catalog []sdk.Stage

// Stage returns the stage of a kind with a name.
func (c Catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	i := slices.IndexFunc(c, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == use })
	if i < 0 {
		return sdk.Stage{}, false
	}
	return c[i], true
}

// Uses returns the names of all stages of a kind.
func (c Catalog) Uses(kind sdk.Kind) []string {
	var uses []string
	for _, s := range c {
		if s.Kind == kind {
			uses = append(uses, s.Name)
		}
	}
	return uses
}

// Process is an open stage, as the engine sees one that runs as a process.
type Process struct{ *wire.Stage }

// Fingerprint says nothing: all stages of a test are of one version.
func (Process) Fingerprint() string { return "" }

// Open opens a stage behind the wire. It is closed with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (Process, error) {
	t.Helper()
	opened, err := sdktest.Open(t, stage, setup, config)
	return Process{opened}, err
}
