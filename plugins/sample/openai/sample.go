package openai

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

type voter struct {
	config  config
	model   *chatmodel.Model
	samples int          // per item
	choices atomic.Int32 // most per request
	reading answer.Options
}

// Close closes idle connections.
func (v *voter) Close() error {
	v.model.Close()
	return nil
}

func (v *voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	return api.Rows(ctx, b.Items, v.vote)
}

// vote returns the samples of one item: those that are kept, and the others as
// the server gives them.
func (v *voter) vote(ctx context.Context, item sdk.Item) ([]sdk.Sample, error) {
	if len(item.Prompts) == 0 {
		return nil, nil // the model abstains
	}
	questions := make([]question, min(len(item.Prompts), v.samples))
	bases := make([]sdk.Key, len(questions))
	for i := range questions {
		at := (item.Drawn + i) % len(item.Prompts)
		q, err := v.question(item.Prompts[at])
		if err != nil {
			return nil, err
		}
		questions[i], bases[i] = q, q.base
	}
	all := make([]slot, v.samples)
	keys := make([]sdk.Key, v.samples)
	for i := range all {
		q := &questions[i%len(questions)]
		all[i] = slot{question: q, number: item.Drawn + i, key: q.key(item.Drawn + i)}
		keys[i] = all[i].key
	}
	leave, err := v.model.Turn(ctx, bases...)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := v.model.Recall(ctx, keys)
	if err != nil {
		return nil, err
	}
	missing := make([][]*slot, len(questions))
	for i := range all {
		if !all[i].fill(found[i]) {
			missing[i%len(questions)] = append(missing[i%len(questions)], &all[i])
		}
	}
	var calls errgroup.Group // without a context: the answers that others still get are kept
	for _, slots := range missing {
		calls.Go(func() error { return v.ask(ctx, slots) })
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	samples := make([]sdk.Sample, len(all))
	for i := range all {
		samples[i] = v.read(&all[i])
	}
	return samples, nil
}

// slot is a place for one sample's answer.
type slot struct {
	question *question
	number   int // among all samples of the item
	key      sdk.Key
	reply    reply
}
