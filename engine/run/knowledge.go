package run

import (
	"context"
	"fmt"
	"io"

	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/knowledge/stages"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
)

// openKnowledge opens what the retrieve stages search, one after the other:
// building one knowledge takes the whole machine.
func (r *Run) openKnowledge(ctx context.Context, o Options) error {
	for _, block := range r.pipeline.Knowledge() {
		k, err := knowledge.Open(ctx, block, Stages(block, o.Launch), knowledge.Options{
			Stdin: o.Stdin, Waiting: o.Waiting,
			Progress: func(doing string, done, total int) {
				if o.Building != nil {
					o.Building(doing, block.Name, done, total)
				}
			},
		})
		if err != nil {
			return err
		}
		if len(k.Labels) == 0 {
			if err := r.checkLabels(block); err != nil {
				return err
			}
		}
		r.knowledge[block] = k
		r.labels[block] = rule.NewLabelSet(k.Labels)
		if o.Knowledge != nil {
			o.Knowledge(k.Report)
		}
	}
	return nil
}

// Stages starts the stages of a knowledge block by launch.
func Stages(block *pipeline.Knowledge, launch Launch) stages.Starter {
	return &launcher{block: block, launch: launch}
}

type launcher struct {
	block    *pipeline.Knowledge
	launch   Launch
	embedder stages.Embedder
}

func (l *launcher) Embedder(ctx context.Context, state []byte) (e stages.Embedder, err error) {
	if c, ok := l.embedder.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("end %s: %w", l.block.Embed.Use, err)
		}
	}
	l.embedder, err = launchAs[stages.Embedder](ctx, l.launch, LaunchRequest{l.block.Embed, l.block.Name, state})
	return l.embedder, err
}

func (l *launcher) Chunker(ctx context.Context) (stages.Chunker, error) {
	return launchAs[stages.Chunker](ctx, l.launch, LaunchRequest{l.block.Chunk, l.block.Name, nil})
}

func (l *launcher) Enricher(ctx context.Context, s *pipeline.Stage) (stages.Enricher, error) {
	return launchAs[stages.Enricher](ctx, l.launch, LaunchRequest{s, l.block.Name, nil})
}

func (l *launcher) Store(ctx context.Context) (stages.Store, error) {
	return launchAs[stages.Store](ctx, l.launch, LaunchRequest{l.block.Store, l.block.Name, nil})
}

func launchAs[T any](ctx context.Context, launch Launch, l LaunchRequest) (T, error) {
	var t T
	p, err := launch(ctx, l)
	if err != nil {
		return t, err
	}
	t, ok := p.(T)
	if !ok {
		return t, fmt.Errorf("%s %q does not do the work of its kind", l.Stage.Block, l.Stage.Use)
	}
	return t, nil
}
