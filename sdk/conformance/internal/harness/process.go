package harness

import (
	"context"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/serve"
)

// Process is a stage that runs.
type Process struct {
	Stage       *remote.Stage // the engine's end
	Fingerprint string
	Close       func() // may be called again

	Server  *serve.Server   // the other end, where it is in this process; nil: it is not
	Arrived <-chan struct{} // gets a value for a call of a kind's method, unless it has one; nil: nobody can know
}

// Setup says how a stage is started.
type Setup struct {
	Config   string // a JSON object
	StateDir string
	Samples  int
	Log      func(line string)
}

// Starter starts a stage. It returns sdk.ArgumentErrors, joined, where the stage refuses its config.
type Starter func(context.Context, Setup) (*Process, error)

// Subject is a stage under test.
type Subject struct {
	Stage   sdk.Stage // as it describes itself
	Config  string    // a JSON object that it accepts
	Start   Starter
	Options *Options
}

// Open starts the stage in a process that ends with the check at the latest.
func (s *Subject) Open(t T, setup Setup) (*Process, error) {
	t.Helper()
	setup.Log = func(line string) { t.Logf("%s", line) }
	p, err := s.Start(t.Context(), setup)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Close)
	return p, nil
}

// Setup is how a check starts the stage, with a new state folder.
func (s *Subject) Setup(t T) Setup {
	setup := Setup{Config: s.Config, StateDir: t.TempDir()}
	switch s.Stage.Kind {
	case sdk.KindRerank, sdk.KindPrompt, sdk.KindSample, sdk.KindElect:
		setup.Samples = 1
	}
	return setup
}
