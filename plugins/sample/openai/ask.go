package openai

import (
	"context"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/backends"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// ask fills the slots of one question and one backend, or has those of others fill them where that
// does not serve.
func (v *voter) ask(ctx context.Context, slots []*slot) error {
	return v.set.Do(ctx, slots[0].backend, func(ctx context.Context, b *backends.Backend) error {
		left := slices.DeleteFunc(slices.Clone(slots), func(s *slot) bool { return s.given })
		return v.askAll(ctx, b, left)
	})
}

// askAll fills slots. The first request goes alone, so that the server
// has the prompt in its cache for the others; not where its answer comes later.
func (v *voter) askAll(ctx context.Context, b *backends.Backend, slots []*slot) error {
	if len(slots) == 0 {
		return nil
	}
	sent, err := b.Applied(ctx, v.numbered(b, slots[0].question, 0, min(len(slots), int(b.Choices.Load()))))
	if err != nil {
		return err
	}
	size := max(1, sent.N)
	if len(slots) <= size {
		return v.askUntil(ctx, b, slots)
	}
	if !api.Later(ctx) {
		if err := v.askUntil(ctx, b, slots[:size]); err != nil {
			return err
		}
		slots = slots[size:]
	}
	return v.askInParts(ctx, b, slots, size)
}

// askInParts fills slots by requests for so many at a time.
func (v *voter) askInParts(ctx context.Context, b *backends.Backend, slots []*slot, size int) error {
	var calls errgroup.Group
	for part := range slices.Chunk(slots, size) {
		calls.Go(func() error { return v.askUntil(ctx, b, part) })
	}
	return calls.Wait()
}

// askUntil requests choices until every slot has one. Each is cached as soon as it
// arrives.
func (v *voter) askUntil(ctx context.Context, b *backends.Backend, slots []*slot) error {
	for len(slots) > 0 {
		want := min(len(slots), int(b.Choices.Load()))
		given, asked, err := v.request(ctx, b, slots, want)
		if refused := want; want > 1 && api.BadRequest(err) && sdk.CodeOf(err) != sdk.CodeRefused { // n may be too large: some servers give few choices, or only one
			for want > 1 && api.BadRequest(err) {
				want /= 2
				given, asked, err = v.request(ctx, b, slots, want)
			}
			if err == nil {
				lower(b, want)
				b.WarnOnce("n", "the server refuses n choices in one request: it is asked for fewer", "refused", refused, "asked", want)
			}
		}
		if api.TooLong(err) {
			err = fmt.Errorf("%w; max_tokens in the config of the prompt makes it shorter", err)
		}
		if err != nil {
			return err
		}
		if asked < want { // by its profile: the other items' requests go at the same time
			lower(b, asked)
		}
		if given < min(want, asked) {
			b.WarnOnce("fewer", "the server gives fewer choices than it is asked for: it is asked again", "asked", asked, "given", given)
		}
		if slots = slots[given:]; api.Later(ctx) { // all of the rest at once
			return v.askInParts(ctx, b, slots, given)
		}
	}
	return nil
}

// lower reduces the most choices per request.
func lower(b *backends.Backend, to int) {
	for now := b.Choices.Load(); int32(to) < now && !b.Choices.CompareAndSwap(now, int32(to)); now = b.Choices.Load() {
	}
}

// request sends one request for n answers. It fills slots with as many as the server
// gives, caches them, and returns how many: at least one, where there is no error. Asked is
// how many the model was asked for, which may be fewer.
func (v *voter) request(ctx context.Context, b *backends.Backend, slots []*slot, n int) (given, asked int, err error) {
	q := slots[0].question
	err = b.Send(api.For(ctx, slots[0].key), v.numbered(b, q, slots[0].number, n), func(got dialect.Reply, sent dialect.Request) error {
		given, asked = min(len(got.Choices), len(slots)), max(1, sent.N)
		var keys []sdk.Key
		var values [][]byte
		keep := func(key sdk.Key, r reply) { keys, values = append(keys, key), append(values, api.Value(r)) }
		for i, s := range slots[:given] {
			r := reply{Choice: got.Choices[i], Probability: v.weigh(q, got.Choices[i], sent)}
			if i == 0 {
				r.Input, r.Cached, r.Output = got.Usage.InputTokens, got.Usage.CachedTokens, got.Usage.OutputTokens
			}
			if s.backend.Same != b.Same { // it stands in for an answer of the other model, and is one of its own
				keep(q.key(b, s.number), r)
				r.Model = b.Name()
			}
			keep(s.key, r)
			s.reply, s.given = r, true
		}
		v.CachePut(ctx, keys, values)
		return nil
	})
	return given, asked, err
}

// weigh is a reply's probability where it was asked for and given; 0: nobody knows.
func (v *voter) weigh(q *question, c dialect.Choice, sent dialect.Request) float64 {
	if !sent.Logprobs {
		return 0
	}
	if len(c.Tokens) == 0 {
		v.WarnOnce("logprobs", "the server gives no logprobs: its answers weigh 1")
		return 0
	}
	if p := probability(c.Tokens, q.prompt, v.reading); !math.IsNaN(p) {
		return p
	}
	return 0
}
