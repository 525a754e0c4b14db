package openai

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/backends"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

type voter struct {
	*backends.Backend // main
	set               *backends.Set
	config            config
	samples           int // per item
	reading           answer.Options
}

// Close closes idle connections.
func (v *voter) Close() error { return v.set.Close() }

// Models implements sdk.Prober.
func (v *voter) Models() []sdk.Model { return v.set.Models() }

// Sample implements sdk.Sampler.
func (v *voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	return v.CollectSamples(ctx, "", b)
}

// CollectSamples implements sdk.SampleCollector.
func (v *voter) CollectSamples(ctx context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	return chatmodel.Later(ctx, v.Model, handle, func(ctx context.Context) ([][]sdk.Sample, error) {
		return api.Rows(ctx, b.Items, v.vote)
	})
}

// vote returns the samples of one item: cached answers, and for the others what the
// server answers.
func (v *voter) vote(ctx context.Context, item sdk.Item) ([]sdk.Sample, error) {
	questions, all, err := v.slots(item)
	if len(questions) == 0 || err != nil {
		return nil, err // without a prompt the model abstains
	}
	bases, keys := make([]sdk.Key, len(questions)), make([]sdk.Key, len(all))
	for i := range questions {
		bases[i] = questions[i].bases[0]
	}
	for i := range all {
		keys[i] = all[i].key
	}
	leave, err := v.Turn(ctx, bases...)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := v.CacheGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	type group struct{ question, backend int }
	missing := map[group][]*slot{}
	for i := range all {
		if s := &all[i]; !v.fill(s, found[i]) {
			of := group{i % len(questions), s.backend.Index}
			missing[of] = append(missing[of], s)
		}
	}
	var calls errgroup.Group // without a context: answers to other requests are still cached
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

// slots returns the questions about an item, and a slot for each answer: slot i is for
// question i modulo their number.
func (v *voter) slots(item sdk.Item) ([]question, []slot, error) {
	questions := make([]question, min(len(item.Prompts), v.samples))
	if len(questions) == 0 {
		return nil, nil, nil
	}
	for i := range questions {
		var err error
		if questions[i], err = v.question(item.Prompts[(item.Drawn+i)%len(item.Prompts)], item.Rejected); err != nil {
			return nil, nil, err
		}
	}
	all := make([]slot, v.samples)
	for i := range all {
		q, number := &questions[i%len(questions)], item.Drawn+i
		b := v.set.Choose(q.bases[0], number)
		all[i] = slot{question: q, number: number, backend: b, key: q.key(b, number)}
	}
	return questions, all, nil
}

// slot holds one sample's answer.
type slot struct {
	question *question
	number   int               // among all samples of the item
	backend  *backends.Backend // that it is to come from
	key      sdk.Key
	given    bool
	reply    reply
}
