package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Func starts the process of a stage. What it returns implements the sdk's interface
// of the stage's kind; of an embed stage stages.Embedder, of a store stage
// stages.Store.
type Func func(context.Context, Request) (any, error)

// Request says which process to start.
type Request struct {
	Stage     *pipeline.Stage
	Knowledge string // the block that the stage stands in, if that is a knowledge
	State     []byte // of a fitted embedder
	StateDir  string // of a stage that learns from a knowledge; empty: its usual one
	HeldOut   bool   // its items are rows of a knowledge: what it says of them in logs concerns nobody

}

// Knowledge starts the stages of a knowledge block by start.
func Knowledge(block *pipeline.Knowledge, start Func) stages.Starter {
	return &launcher{block: block, start: start}
}

type launcher struct {
	block    *pipeline.Knowledge
	start    Func
	embedder stages.Embedder
}

func (l *launcher) Embedder(ctx context.Context, state []byte, resolved json.RawMessage) (e stages.Embedder, err error) {
	if c, ok := l.embedder.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("end %s: %w", l.block.Embed.Use, err)
		}
	}
	stage := *l.block.Embed
	if stage.Config.Open, err = sdk.CompleteConfig(stage.Config.Open, resolved); err != nil {
		return nil, err
	}
	l.embedder, err = as[stages.Embedder](ctx, l, &stage, state)
	return l.embedder, err
}

func (l *launcher) Chunker(ctx context.Context) (stages.Chunker, error) {
	return as[stages.Chunker](ctx, l, l.block.Chunk, nil)
}

func (l *launcher) Enricher(ctx context.Context, s *pipeline.Stage) (stages.Enricher, error) {
	return as[stages.Enricher](ctx, l, s, nil)
}

func (l *launcher) Store(ctx context.Context) (stages.Store, error) {
	return as[stages.Store](ctx, l, l.block.Store, nil)
}

func as[T any](ctx context.Context, l *launcher, s *pipeline.Stage, state []byte) (T, error) {
	var t T
	p, err := l.start(ctx, Request{Stage: s, Knowledge: l.block.Name, State: state})
	if err != nil {
		return t, err
	}
	t, ok := p.(T)
	if !ok {
		return t, fmt.Errorf("%s %q does not do the work of its kind", s.Block, s.Use)
	}
	return t, nil
}
