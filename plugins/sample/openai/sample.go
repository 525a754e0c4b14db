package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sashabaranov/go-openai"

	"github.com/racflow/racflow/sdk"
)

type voter struct {
	config  config
	api     *openai.Client
	doer    *doer
	samples int           // per item
	choices atomic.Int32  // most per request
	slots   chan struct{} // one per request that may be under way
}

// Close closes idle connections.
func (v *voter) Close() error {
	v.doer.client.CloseIdleConnections()
	return nil
}

func (v *voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	errs := make([]error, len(b.Items))
	var wg sync.WaitGroup
	for i, item := range b.Items {
		wg.Go(func() { samples[i], errs[i] = v.vote(ctx, item.Prompts) })
	}
	wg.Wait()
	failed := sdk.RowErrors{}
	for i, err := range errs {
		if err != nil {
			failed[i] = err
		}
	}
	switch {
	case len(failed) == 0:
		return samples, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return samples, failed
}

// vote collects the samples of one item, spread evenly over its prompts.
func (v *voter) vote(ctx context.Context, prompts []sdk.Prompt) ([]sdk.Sample, error) {
	var samples []sdk.Sample
	for i, p := range prompts {
		more, err := v.ask(ctx, p.Text, share(v.samples, i, len(prompts)))
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
	}
	return samples, nil
}

// share is what part i of n gets of a whole.
func share(whole, i, n int) int { return (i+1)*whole/n - i*whole/n }

// ask requests choices until it has n samples. A request's tokens are counted
// on its first sample.
func (v *voter) ask(ctx context.Context, prompt string, n int) ([]sdk.Sample, error) {
	var samples []sdk.Sample
	for len(samples) < n {
		want := min(n-len(samples), int(v.choices.Load()))
		texts, usage, err := v.request(ctx, prompt, want)
		if want > 1 && badRequest(err) { // it may be n: some servers take few choices, or only one
			if texts, usage, err = v.request(ctx, prompt, 1); err == nil {
				v.choices.Store(1)
			}
		}
		if err != nil {
			return nil, err
		}
		if len(texts) == 0 { // so every round brings at least one: n rounds at most
			return nil, sdk.Transient(errors.New("the server's reply holds no choices"), 0)
		}
		for _, text := range texts[:min(len(texts), n-len(samples))] {
			s := sdk.Sample{Usage: usage}
			if label := answer(text); label != "" {
				s.Answers = []sdk.Answer{{Label: label, Weight: 1}}
			}
			samples = append(samples, s)
			usage = sdk.Usage{}
		}
	}
	return samples, nil
}

// answer is the first line of what the model wrote.
func answer(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// request sends one request for n choices and returns the texts it brought.
func (v *voter) request(ctx context.Context, prompt string, n int) ([]string, sdk.Usage, error) {
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return nil, sdk.Usage{}, ctx.Err()
	}
	texts, usage, err := v.complete(ctx, prompt, n)
	if coded := new(sdk.Error); err != nil && ctx.Err() == nil && !errors.As(err, &coded) {
		err = sdk.Invalid(fmt.Errorf("asking %s: %w", v.config.Model, err)) // not the doer's: the client's own
	}
	if usage == nil {
		usage = &openai.Usage{}
	}
	return texts, sdk.Usage{InputTokens: uint64(max(0, usage.PromptTokens)), OutputTokens: uint64(max(0, usage.CompletionTokens))}, err
}

func (v *voter) complete(ctx context.Context, prompt string, n int) (texts []string, usage *openai.Usage, err error) {
	if v.config.Endpoint == "completions" {
		reply, err := v.api.CreateCompletion(ctx, v.completionRequest(prompt, n))
		for _, c := range reply.Choices {
			texts = append(texts, c.Text)
		}
		return texts, reply.Usage, err
	}
	reply, err := v.api.CreateChatCompletion(ctx, v.chatRequest(prompt, n))
	for _, c := range reply.Choices {
		texts = append(texts, c.Message.Content) // empty: a refusal
	}
	return texts, &reply.Usage, err
}

func (v *voter) chatRequest(prompt string, n int) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{
		Model:       v.config.Model,
		Messages:    []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: prompt}},
		N:           n,
		Temperature: float32(v.config.Temperature),
		MaxTokens:   v.config.MaxTokens, //nolint:staticcheck // many servers know no other name for it
		Stop:        v.config.stops(),
	}
}

func (v *voter) completionRequest(prompt string, n int) openai.CompletionRequest {
	return openai.CompletionRequest{
		Model:       v.config.Model,
		Prompt:      prompt,
		N:           n,
		Temperature: float32(v.config.Temperature),
		MaxTokens:   v.config.MaxTokens,
		Stop:        v.config.stops(),
	}
}

func (c config) stops() []string {
	if c.Stop == "" {
		return nil
	}
	return []string{c.Stop}
}
