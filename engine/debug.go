package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/pipeline"
)

// relieve takes the time limits from the stage that Options.Debug names.
func (w *Workspace) relieve(file *pipeline.File, chosen *pipeline.Pipeline) error {
	if w.options.Debug == "" {
		return nil
	}
	var names []string
	found := false
	for name, s := range chosen.Processes() {
		if name == w.options.Debug {
			found, s.Timeout = true, host.Forever
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !found {
		return optionError("Debug", "%[2]s has no stage %[3]q with a process; %[1]s names one of %[4]s", file.Path, w.options.Debug, strings.Join(names, ", "))
	}
	return nil
}

// DebuggerAttached waits until a debugger is attached to a process. Only Linux tells; elsewhere it
// is an error.
func DebuggerAttached(ctx context.Context, pid int) error { return host.Attached(ctx, pid) }
