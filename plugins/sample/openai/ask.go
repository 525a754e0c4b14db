package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// ask fills slots of one question. The first request goes alone, so that the
// server has the prompt in its cache when the others come.
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

// askUntil requests choices until every slot has one. Each is kept as soon as
// it is there.
func (v *voter) askUntil(ctx context.Context, slots []*slot) error {
	for len(slots) > 0 {
		want := min(len(slots), int(v.choices.Load()))
		replies, err := v.request(ctx, slots, want)
		if refused := want; want > 1 && api.BadRequest(err) && !api.TooLong(err) { // it may be n: some servers take few choices, or only one
			for want > 1 && api.BadRequest(err) {
				want /= 2
				replies, err = v.request(ctx, slots, want)
			}
			if err == nil {
				v.lower(want)
				v.once("n", "the server refuses n choices in one request: it is asked for fewer", "refused", refused, "asked", want)
			}
		}
		switch {
		case api.TooLong(err):
			return fmt.Errorf("%w; max_tokens in the config of the prompt makes it shorter", err)
		case api.BadRequest(err) && slots[0].question.schema != nil:
			return fmt.Errorf("%w; where the server knows no JSON schemas, write structured = \"off\"", err)
		}
		if err != nil {
			return err
		}
		if len(replies) == 0 { // so every round brings at least one
			return sdk.Transient(errors.New("the server's reply holds no choices"), 0)
		}
		if len(replies) < want {
			v.once("fewer", "the server gives fewer choices than it is asked for: it is asked again", "asked", want, "given", len(replies))
		}
		slots = slots[len(replies):]
	}
	return nil
}

// lower sets the most choices per request, never up.
func (v *voter) lower(to int) {
	for now := v.choices.Load(); int32(to) < now && !v.choices.CompareAndSwap(now, int32(to)); now = v.choices.Load() {
	}
}

// keep puts replies into slots, and into what outlives the process. Where that
// fails the answers still count.
func (v *voter) keep(ctx context.Context, slots []*slot, replies []reply) {
	var calls errgroup.Group
	for i, r := range replies {
		s := slots[i]
		s.reply = r
		calls.Go(func() error { return v.host.Keep(ctx, s.key, r.value()) })
	}
	if err := calls.Wait(); err != nil && ctx.Err() == nil {
		v.once("keep", "answers cannot be kept: they will be asked for again", "error", err)
	}
}

// request sends one request for the answers of the first n slots. It fills and
// keeps as many of them as the server gives, and returns those.
func (v *voter) request(ctx context.Context, slots []*slot, n int) ([]reply, error) {
	q := slots[0].question
	r := &api.Request{Client: v.client, Tokens: q.maxTokens * n, Fields: v.fields(q), Hold: true}
	defer r.Finish()
	if q.maxTokens == 0 { // nobody knows
		r.Tokens = jsonTokens * n
	}
	settings := openai.DefaultConfig("")
	settings.BaseURL, settings.HTTPClient = v.client.Address(), r
	client := openai.NewClientWithConfig(settings)
	replies, err := v.complete(ctx, client, q, slots[0].number, n)
	if err != nil {
		coded := new(sdk.Error)
		if ctx.Err() == nil && !errors.As(err, &coded) { // the library's own
			err = sdk.Invalid(fmt.Errorf("asking %s: %w", v.config.Model, err))
		}
		return nil, err
	}
	for _, reply := range replies {
		if reply.Finish == "error" { // as gateways say it
			return nil, sdk.Transient(errors.New("the server broke off in the middle of an answer"), 0)
		}
	}
	if len(replies) > 0 {
		replies[0].Input, replies[0].Cached, replies[0].Output = r.Usage().InputTokens, r.Usage().CachedTokens, r.Usage().OutputTokens
	}
	replies = replies[:min(len(replies), len(slots))]
	v.keep(ctx, slots, replies)
	return replies, nil
}

func (v *voter) complete(ctx context.Context, client *openai.Client, q *question, number, n int) (replies []reply, err error) {
	if v.config.Endpoint == "completions" {
		got, err := client.CreateCompletion(ctx, v.completionRequest(q, number, n))
		for _, c := range got.Choices {
			replies = append(replies, v.completionReply(q, c))
		}
		return replies, err
	}
	got, err := client.CreateChatCompletion(ctx, v.chatRequest(q, number, n))
	for _, c := range got.Choices {
		replies = append(replies, v.chatReply(q, c))
	}
	return replies, err
}

func (v *voter) chatRequest(q *question, number, n int) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model: v.config.Model, N: n, Stop: q.stop, Seed: v.seed(number), LogProbs: v.config.Logprobs && !thinks(v.config.Model),
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
	if v.config.Logprobs {
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

// fields are those of a request that the library lacks, or leaves out where
// they are 0 or empty.
func (v *voter) fields(q *question) map[string]any {
	c, fields := v.config, map[string]any{}
	if thinks(c.Model) {
		v.once("thinks", "the model takes neither temperature, top_p, stop and logprobs nor n choices at a time", "model", c.Model)
	} else {
		fields["temperature"] = c.Temperature
		if c.TopP < 1 {
			fields["top_p"] = c.TopP
		}
	}
	if q.maxTokens > 0 {
		fields[c.maxTokensField()] = q.maxTokens
	}
	if c.PromptCacheKey != "" {
		fields["prompt_cache_key"] = c.PromptCacheKey
	}
	if q.choice != nil {
		fields["structured_outputs"] = map[string]any{"choice": q.choice}
	}
	if c.Endpoint == "completions" {
		if q.schema != nil { // for vLLM, and for llama.cpp
			fields["response_format"] = map[string]any{"type": "json_schema", "json_schema": map[string]any{
				"name": "answer", "strict": true, "schema": q.schema,
			}}
			fields["grammar"] = q.grammar
		}
		return fields
	}
	messages := make([]map[string]string, len(q.messages)) // the library would drop an empty content
	for i, m := range q.messages {
		messages[i] = map[string]string{"role": m.Role, "content": m.Text}
	}
	fields["messages"] = messages
	return fields
}

func (c config) maxTokensField() string {
	switch {
	case c.MaxTokensField != "auto":
		return c.MaxTokensField
	case thinks(c.Model) && c.Endpoint == "chat":
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func (v *voter) chatReply(q *question, c openai.ChatCompletionChoice) reply {
	r := reply{Text: c.Message.Content, Refusal: c.Message.Refusal, Finish: string(c.FinishReason)}
	for _, part := range c.Message.MultiContent { // some gateways answer in parts
		r.Text += part.Text
	}
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
	r := reply{Text: c.Text, Finish: c.FinishReason}
	var tokens []token
	for i, t := range c.LogProbs.Tokens {
		if i < len(c.LogProbs.TokenLogprobs) {
			tokens = append(tokens, token{t, float64(c.LogProbs.TokenLogprobs[i])})
		}
	}
	v.weigh(q, &r, tokens)
	return r
}

// weigh sets a reply's probability where it was asked for and is there.
func (v *voter) weigh(q *question, r *reply, tokens []token) {
	if !v.config.Logprobs || thinks(v.config.Model) {
		return
	}
	if len(tokens) == 0 {
		v.once("logprobs", "the server gives no logprobs: its answers weigh 1")
		return
	}
	if p := probability(tokens, q.prompt.Fields != nil); !math.IsNaN(p) {
		r.Probability = p
	}
}

// value is a reply as it is kept.
func (r reply) value() []byte {
	raw, err := json.Marshal(r)
	if err != nil { // texts and finite numbers always can be
		panic(err)
	}
	return raw
}
