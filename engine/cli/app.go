package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
)

// app is what a verb on a pipeline file works with: the engine, and standard error,
// where its events are shown.
type app struct {
	*engine.Workspace
	*display
	ended func(error) // what watches the verb hears of its end
}

// open makes ready to load files and start processes. It does neither.
func (f *fileFlags) open(c *cobra.Command, stdin io.Reader) (*app, error) {
	if f.state == "" {
		return nil, errors.New("--state is empty: name a folder")
	}
	a := &app{display: newDisplay(), ended: func(error) {}}
	options, err := f.options(stdin)
	if err != nil {
		return nil, err
	}
	options.Events = a.events()
	options.Events.Debugging = debuggingAt(a.print, stdin)
	if options.Log, err = newLog(); err != nil {
		return nil, err
	}
	if f.watched {
		if a.ended, err = f.telemetry.watch(c, &options, a.print); err != nil {
			return nil, err
		}
	}
	if a.Workspace, err = engine.NewWorkspace(c.Context(), options); err != nil {
		a.ended(err)
	}
	return a, err
}

func (a *app) close() {
	a.progress.Clear()
	a.Close()
}

// files calls do with a workspace, which ends with it.
func (f *fileFlags) files(c *cobra.Command, do func(*app) error) error {
	a, err := f.open(c, c.InOrStdin())
	if err != nil {
		return err
	}
	defer a.close()
	return do(a)
}

// pipelineOf calls do with the pipeline of a file, which ends with it. No stage is
// started before.
func (f *fileFlags) pipelineOf(c *cobra.Command, path string, stdin io.Reader, do func(*app, *engine.Pipeline) error) (err error) {
	a, err := f.open(c, stdin)
	if err != nil {
		return err
	}
	defer func() {
		a.close()
		a.ended(err)
	}()
	p, err := a.Open(path)
	if err != nil {
		return err
	}
	return do(a, p)
}
