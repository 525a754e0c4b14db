package engine

import (
	"os"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/wire"
)

// Builtin are the stages that the running program offers by executing itself.
// Serve is the only source of one, so no program opens a pipeline without having
// been able to serve its stages: it cannot start copies of its own main function.
type Builtin struct{ stages []sdk.Stage }

// Serve makes a program able to run stages itself. The engine starts the running
// program once for each stage; in such a process Serve does the work of that stage
// and does not return. In any other it returns at once. Call it before all else, at
// the latest as the first statement of main: what a program does before that, each
// of its stage processes does as well.
func Serve(stages []sdk.Stage) Builtin {
	if os.Getenv(wire.StageKey) != "" && os.Getenv(wire.CookieKey) == wire.CookieValue {
		serve.Plugin(sdk.Plugin{Name: "racflow", Version: Version(), Stages: stages})
		os.Exit(0)
	}
	return Builtin{stages}
}

// Stages are those that Serve was given.
func (b Builtin) Stages() []sdk.Stage { return b.stages }
