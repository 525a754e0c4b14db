package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/sdk"
)

// This file defines how the engine asks for a stage's process: the request, and the function that
// answers it. The opener of a pipeline provides the function: the command starts processes by
// package host, a test opens stages in memory.
//
// This file starts nothing itself.

// Launch starts the process of a stage. Its result implements the sdk's interface of the stage's
// kind; for an embed stage generation.Embedder, for a store stage generation.Store.
type Launch func(context.Context, LaunchRequest) (any, error)

// LaunchRequest says which process to start.
type LaunchRequest struct {
	Stage     *pipeline.Stage
	Knowledge string // the knowledge block that has the stage, if any
	State     []byte // of a fitted embedder
	StateDir  string // of a stage that learns from a knowledge; empty: the default
	HeldOut   bool   // its items are rows of a knowledge: log messages about them do not matter

}

// LaunchKnowledge returns a Starter of the stages of a knowledge block.
func LaunchKnowledge(block *pipeline.Knowledge, start Launch) generation.Starter {
	return &launcher{block: block, start: start}
}

type launcher struct {
	block    *pipeline.Knowledge
	start    Launch
	embedder generation.Embedder
}

func (l *launcher) Embedder(ctx context.Context, state []byte, resolved json.RawMessage) (e generation.Embedder, err error) {
	if c, ok := l.embedder.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("end %s: %w", l.block.Embed.Use, err)
		}
	}
	stage := *l.block.Embed
	if stage.Config.Open, err = sdk.CompleteConfig(stage.Config.Open, resolved); err != nil {
		return nil, err
	}
	l.embedder, err = as[generation.Embedder](ctx, l, &stage, state)
	return l.embedder, err
}

func (l *launcher) Chunker(ctx context.Context) (generation.Chunker, error) {
	return as[generation.Chunker](ctx, l, l.block.Chunk, nil)
}

func (l *launcher) Enricher(ctx context.Context, s *pipeline.Stage) (generation.Enricher, error) {
	return as[generation.Enricher](ctx, l, s, nil)
}

func (l *launcher) Store(ctx context.Context) (generation.Store, error) {
	return as[generation.Store](ctx, l, l.block.Store, nil)
}

func as[T any](ctx context.Context, l *launcher, s *pipeline.Stage, state []byte) (T, error) {
	var t T
	p, err := l.start(ctx, LaunchRequest{Stage: s, Knowledge: l.block.Name, State: state})
	if err != nil {
		return t, err
	}
	t, ok := p.(T)
	if !ok {
		return t, fmt.Errorf("%s %q does not do the work of its kind", s.Block, s.Use)
	}
	return t, nil
}
