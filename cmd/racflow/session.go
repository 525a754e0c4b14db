package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/racflow/racflow/engine"
)

// session is what a verb on a pipeline file works with.
type session struct {
	*display
	*engine.Workspace
	pipeline *engine.Pipeline // nil: no pipeline of the file was opened
}

// session makes ready to load files and start processes. It does neither.
func (f *fileFlags) session(ctx context.Context) (*session, error) {
	return f.sessionOn(ctx, &inputFlags{}, nil)
}

func (f *fileFlags) sessionOn(ctx context.Context, input *inputFlags, stdin io.Reader) (*session, error) {
	s := &session{display: newDisplay()}
	if f.state == "" {
		return nil, errors.New("--state is empty: name a folder")
	}
	options, err := f.options()
	if err != nil {
		return nil, err
	}
	options.Input, options.Limit, options.Stdin = input.input, input.limit, stdin
	options.Log, options.Events = newLog(), s.events()
	s.Workspace, err = engine.NewWorkspace(ctx, options)
	return s, err
}

// start opens a pipeline to work with. It starts no stage.
func (f *fileFlags) start(ctx context.Context, path string, input *inputFlags, stdin io.Reader) (*session, error) {
	s, err := f.sessionOn(ctx, input, stdin)
	if err != nil {
		return nil, err
	}
	if s.pipeline, err = s.Open(path); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	s.progress.Clear()
	s.Close()
	s.tellSpent(os.Stderr)
}
