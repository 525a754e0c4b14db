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
	add := func(name string, s *pipeline.Stage) {
		if name == w.options.Debug {
			found, s.Timeout = true, host.Forever
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, k := range chosen.Knowledge() {
		for _, s := range k.Stages() {
			name := k.Name
			if s.Block == "enrich" {
				name = s.Name
			}
			add(s.Block+"."+name, s)
		}
	}
	for _, s := range chosen.Stages {
		if !s.Enabled || s.Kind == "" { // a search has no process
			continue
		}
		add(s.Block+"."+s.Name, s)
		for _, f := range s.Fallbacks {
			add(s.Block+"."+s.Name, f.Stage)
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
