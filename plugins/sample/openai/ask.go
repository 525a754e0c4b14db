package openai

import (
	"context"
	"fmt"
	"math"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
)

// ask fills the slots of one question. The first request goes alone, so that the server
// has the prompt in its cache for the others.
func (v *voter) ask(ctx context.Context, slots []*slot) error {
	size := int(v.choices.Load())
	if len(slots) <= size {
		return v.askUntil(ctx, slots)
	}
	if err := v.askUntil(ctx, slots[:size]); err != nil {
		return err
	}
	var calls errgroup.Group
	for from := size; from < len(slots); from += size {
		part := slots[from:min(from+size, len(slots))]
		calls.Go(func() error { return v.askUntil(ctx, part) })
	}
	return calls.Wait()
}

// askUntil requests choices until every slot has one. Each is cached as soon as it
// arrives.
func (v *voter) askUntil(ctx context.Context, slots []*slot) error {
	for len(slots) > 0 {
		want := min(len(slots), int(v.choices.Load()))
		given, err := v.request(ctx, slots, want)
		if refused := want; want > 1 && api.BadRequest(err) && sdk.CodeOf(err) != sdk.CodeRefused { // n may be too large: some servers give few choices, or only one
			for want > 1 && api.BadRequest(err) {
				want /= 2
				given, err = v.request(ctx, slots, want)
			}
			if err == nil {
				v.lower(want)
				v.WarnOnce("n", "the server refuses n choices in one request: it is asked for fewer", "refused", refused, "asked", want)
			}
		}
		switch {
		case api.TooLong(err):
			return fmt.Errorf("%w; max_tokens in the config of the prompt makes it shorter", err)
		case api.BadRequest(err) && sdk.CodeOf(err) != sdk.CodeRefused && slots[0].question.schema != nil:
			return fmt.Errorf("%w; where the server knows no JSON schemas, write structured = \"off\"", err)
		}
		if err != nil {
			return err
		}
		if given < want {
			v.WarnOnce("fewer", "the server gives fewer choices than it is asked for: it is asked again", "asked", want, "given", given)
		}
		slots = slots[given:]
	}
	return nil
}

// lower reduces the most choices per request.
func (v *voter) lower(to int) {
	for now := v.choices.Load(); int32(to) < now && !v.choices.CompareAndSwap(now, int32(to)); now = v.choices.Load() {
	}
}

// request sends one request for n answers. It fills slots with as many as the server
// gives, caches them, and returns how many: at least one.
func (v *voter) request(ctx context.Context, slots []*slot, n int) (given int, err error) {
	q := slots[0].question
	r := v.ready(q, n)
	take := func(replies []reply) error {
		if len(replies) == 0 {
			return chatmodel.NoChoices()
		}
		for _, reply := range replies {
			if err := reply.Broken(); err != nil {
				return err
			}
		}
		replies[0].Input, replies[0].Cached, replies[0].Output = r.Usage().InputTokens, r.Usage().CachedTokens, r.Usage().OutputTokens
		given = min(len(replies), len(slots))
		keys, values := make([]sdk.Key, given), make([][]byte, given)
		for i := range given {
			slots[i].reply = replies[i]
			keys[i], values[i] = slots[i].key, api.Value(replies[i])
		}
		v.CachePut(ctx, keys, values)
		return nil
	}
	if v.config.Endpoint == "completions" {
		var got chatmodel.Choices[openai.CompletionChoice]
		r.OnReply = func() error {
			return take(each(got.Choices, func(c openai.CompletionChoice) reply { return v.completionReply(q, c) }))
		}
		err = r.Post(ctx, v.path(), v.body(q, slots[0].number, n), &got)
		return given, err
	}
	var got chatmodel.Choices[openai.ChatCompletionChoice]
	r.OnReply = func() error {
		return take(each(got.Choices, func(c openai.ChatCompletionChoice) reply { return v.chatReply(q, c) }))
	}
	err = r.Post(ctx, v.path(), v.body(q, slots[0].number, n), &got)
	return given, err
}

func (v *voter) path() string {
	if v.config.Endpoint == "completions" {
		return "/completions"
	}
	return chatmodel.ChatPath
}

// each makes a reply of every choice.
func each[C any](choices []C, read func(C) reply) []reply {
	replies := make([]reply, len(choices))
	for i, c := range choices {
		replies[i] = read(c)
	}
	return replies
}

// body is a request for n answers, without the fields that ready adds.
func (v *voter) body(q *question, number, n int) any {
	if v.config.Endpoint == "completions" {
		return v.completionRequest(q, number, n)
	}
	return v.chatRequest(q, number, n)
}

func (v *voter) chatRequest(q *question, number, n int) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model: v.config.Model, N: n, Stop: q.stop, Seed: v.seed(number), LogProbs: v.config.Logprobs && !v.Thinks() && q.prompt.Passages == nil,
	}
	if q.schema != nil {
		r.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: q.schema, Strict: true},
		}
	}
	return r
}

func (v *voter) completionRequest(q *question, number, n int) openai.CompletionRequest {
	r := openai.CompletionRequest{Model: v.config.Model, Prompt: q.prompt.Text, N: n, Stop: q.stop, Seed: v.seed(number)}
	if v.config.Logprobs && q.prompt.Passages == nil {
		r.LogProbs = 1
	}
	return r
}

// seed gives each request another one.
func (v *voter) seed(number int) *int {
	if v.config.Seed < 0 {
		return nil
	}
	seed := v.config.Seed + number
	return &seed
}

// ready is a request for n answers, with the fields that go-openai lacks, or leaves out
// where they are 0 or empty.
func (v *voter) ready(q *question, n int) *api.Request {
	c, chat := v.config, q.messages
	if c.Endpoint == "completions" {
		chat = nil
	}
	r := v.Request(chat, c.Temperature, q.maxTokens, n)
	if v.Thinks() {
		v.WarnOnce("thinks", "the model takes neither temperature, top_p, stop and logprobs nor n choices at a time", "model", c.Model)
	} else if c.TopP < 1 {
		r.Fields["top_p"] = c.TopP
	}
	if q.choice != nil {
		r.Fields["structured_outputs"] = map[string]any{"choice": q.choice}
	}
	if chat == nil && q.schema != nil { // for vLLM, and for llama.cpp
		r.Fields["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{
			"name": "answer", "strict": true, "schema": q.schema,
		}}
		r.Fields["grammar"] = q.grammar
	}
	return r
}

func (v *voter) chatReply(q *question, c openai.ChatCompletionChoice) reply {
	r := reply{Reply: chatmodel.ReadChoice(c)}
	var tokens []token
	if c.LogProbs != nil {
		for _, t := range c.LogProbs.Content {
			tokens = append(tokens, token{t.Token, t.LogProb})
		}
	}
	v.weigh(q, &r, tokens)
	return r
}

func (v *voter) completionReply(q *question, c openai.CompletionChoice) reply {
	r := reply{Reply: chatmodel.Reply{Text: c.Text, Finish: c.FinishReason}}
	var tokens []token
	for i, t := range c.LogProbs.Tokens {
		if i < len(c.LogProbs.TokenLogprobs) {
			tokens = append(tokens, token{t, float64(c.LogProbs.TokenLogprobs[i])})
		}
	}
	v.weigh(q, &r, tokens)
	return r
}

// weigh sets a reply's probability where it was asked for and given.
func (v *voter) weigh(q *question, r *reply, tokens []token) {
	if !v.config.Logprobs || v.Thinks() || q.prompt.Passages != nil {
		return
	}
	if len(tokens) == 0 {
		v.WarnOnce("logprobs", "the server gives no logprobs: its answers weigh 1")
		return
	}
	if p := probability(tokens, q.prompt, v.reading); !math.IsNaN(p) {
		r.Probability = p
	}
}
