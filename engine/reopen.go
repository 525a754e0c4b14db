package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/launch"
	"github.com/racflow/racflow/engine/pipeline"
)

var errNoBlock = errors.New("the file has no such block any more")

// Reopen returns the generation of a knowledge that a run searched, to be read. It builds
// nothing: one that is not there any more is an error.
func (p *Pipeline) Reopen(ctx context.Context, of manifest.Knowledge) (*knowledge.Knowledge, error) {
	at := slices.IndexFunc(p.file.Knowledge, func(b *pipeline.Knowledge) bool { return b.Name == of.Name })
	if at < 0 {
		return nil, errNoBlock
	}
	block := p.file.Knowledge[at]
	store, err := launch.Knowledge(block, p.launch).Store(ctx)
	if err != nil {
		return nil, p.explain(err)
	}
	return knowledge.Reopen(ctx, block, store, p.workspace.samples(), of.Collection, of.Content)
}

// Process starts a stage alone, which is named as journals name it: "prompt.classify".
func (p *Pipeline) Process(ctx context.Context, name string) (any, *pipeline.Stage, error) {
	s := p.stages()[name]
	if s == nil {
		return nil, nil, errNoBlock
	}
	process, err := p.launch(ctx, launch.Request{Stage: s})
	return process, s, p.explain(err)
}
