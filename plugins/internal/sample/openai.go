package sample

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file is a voter: a language model that is asked n times for the label of an item. It is behind an
// OpenAI-compatible server (OpenAI, Azure, vLLM, llama.cpp, Ollama, gateways) or Anthropic's Messages API.
//
// Sample number i answers prompt i modulo the number of prompts. The samples of one prompt are choices of one
// request. If a server returns fewer choices, the stage asks again until there are n. If a server
// refuses n, the stage asks for fewer, in the end for one; the model's profile stores the number. If a model
// refuses another field (temperature, top_p, seed, stop, logprobs), the field is left out; see package chatmodel.
// With a seed, a request has the seed plus the number of its first sample. So the n answers can differ,
// even if the server always gives the same answer for the same seed.
//
// sdk/support reads the answers, leniently or letter by letter. The stage never trusts an answer: a refusal, a filtered text
// and a text truncated before its label are answers with a reason, which no rule accepts. Where a prompt wants a JSON
// object, its fields and labels are sent as a strict JSON schema, built for each item. If there are more labels than
// such a schema may list, the accept rules check them. Where the prompt wants a list of labels, each label is an
// answer of the same sample, with weights 1, 1/2, 1/3 and so on; where labels are sets, each has weight 1. On the
// completions endpoint a GBNF grammar replaces the schema, since llama.cpp obeys no schema there.
//
// If no answer for an item was accepted, the stage asks again in the same chat. The chat then contains these answers,
// what was wrong with them, and what is allowed. The first request contains nothing of this.
//
// If a prompt shows passages, the model answers with a text of its own: without stop and structured outputs, and at
// most 1,024 tokens long unless the file gives a limit. A truncated text is no answer.
//
// Each answer is cached under its number and its request, without secrets and without arguments that do not change
// results. A cached answer is not asked for again, and gives the same sample with the same usage. If two items ask
// the same at the same time, they take turns, so that the second finds the first one's answers. The first sample of a
// request carries the usage of the request.
//
// A voter may have several services (backends.go): other keys, addresses and models. The key of an answer names the
// model that should give it. If another model answers in its place, the cache and the sample record this, and the
// answer also counts as an answer of that model. Services with the same model share its answers.
//
// Forecast estimates the calls for an item without sending them: their likely usage, and an upper bound if each
// answer has a limit.
// A prompt that is asked level by level (openai_levels.go) takes one request for each level.
//
// An error affects only its item. Retries, limits and budgets are the engine's task. The stage does not turn a chat
// into a text for the completions endpoint.

// Forecast implements sdk.Forecaster.
func (v *openAIVoter) Forecast(item sdk.Item) (f sdk.Forecast, err error) {
	if item.Drawn > 0 && item.Rejected == nil {
		item.Rejected = longest()
	}
	left, err := v.slots(item)
	if err != nil {
		return f, err
	}
	for last := item.Drawn + len(left) - 1; len(left) > 0; {
		missing, err := v.fill(context.Background(), left)
		if err != nil {
			return f, err
		}
		f.Cached += len(left)
		for of, slots := range missing {
			f.Cached -= len(slots)
			one, err := v.way(of.question, of.backend, len(slots), last)
			if err != nil {
				return f, err
			}
			f.Add(one)
		}
		left = slices.DeleteFunc(left, func(s *slot) bool { return !s.given })
		if left, err = v.next(left); err != nil {
			return f, err
		}
	}
	return f, nil
}

// answers estimates the tokens and requests for n answers to a question from a backend. The upper bound covers every
// backend, since another backend may answer instead.
func (v *openAIVoter) answers(q *question, from *Backend, n, number int) (f sdk.Forecast, err error) {
	for _, b := range v.set.All {
		one, err := b.Forecast(v.numbered(b, q, number, 1), n, v.config.MaxN, q.written)
		if err != nil {
			return f, err
		}
		most := sdk.Usage{InputTokens: max(f.Most.InputTokens, one.Most.InputTokens), OutputTokens: max(f.Most.OutputTokens, one.Most.OutputTokens)}
		unknown := f.Unknown
		if b == from {
			f = one
		}
		if f.Most = most; one.Unknown != "" {
			unknown = one.Unknown
		}
		f.Unknown = unknown
	}
	return f, nil
}

// Expected tokens of an answer.
const (
	ending      = 1   // the end of the answer
	property    = 4   // the name of a property of an object, with its quotes
	explanation = 40  // a property that is not the label: a sentence or two
	paragraph   = 150 // a text that cites passages
	unlabelled  = 8   // a label where none is known
	several     = 2   // how many labels a set has
)

// written returns the expected number of tokens of an answer.
func (q *question) written(known profile.Profile) int {
	p := q.prompt
	label := unlabelled
	if len(p.Labels) > 0 {
		label = (known.Tokens(strings.Join(p.Labels, " ")) + len(p.Labels) - 1) / len(p.Labels)
	}
	if q.many {
		label *= several
	}
	switch {
	case p.Passages != nil:
		return paragraph
	case p.Fields == nil:
		return label + ending
	}
	sum := ending
	for _, field := range p.Fields {
		sum += property
		if field == sdk.LabelProperty || field == sdk.LabelsProperty {
			sum += label
		} else {
			sum += explanation
		}
	}
	return sum
}

var _ sdk.Forecaster = (*openAIVoter)(nil)

type openAIConfig struct {
	chatmodel.Config
	BackendArguments
	Endpoint    string   `config:"endpoint" default:"chat" one_of:"chat,completions" doc:"chat sends the prompt as a chat, completions as a text to continue."`
	Temperature float64  `config:"temperature" default:"0.7" min:"0" max:"100" doc:"How varied the samples are; 0 gives the likeliest text."`
	TopP        float64  `config:"top_p" default:"1" above:"0" max:"1" doc:"Share of the likeliest tokens to draw from; 1 sends none."`
	Seed        int      `config:"seed" default:"-1" min:"-1" doc:"Seed of a request, plus the number of its first sample; -1 sends none."`
	MaxTokens   int      `config:"max_tokens" default:"0" min:"-1" doc:"Most tokens of an answer, without what a model thinks before it; 0: 32 for a label, 128 for a set of labels, 512 for JSON, 1024 for a text that cites passages; -1: no limit."`
	Stop        []string `config:"stop" pattern:"(?s)." doc:"Texts that end an answer; not sent where the answer is JSON or a text that cites passages. Without it a line break ends those of the completions endpoint."`
	MaxN        int      `config:"max_n" affects_output:"false" default:"128" min:"1" max:"128" doc:"Most choices to ask for in one request."`
	Logprobs    bool     `config:"logprobs" doc:"Vote by the probabilities that the server gives to the tokens of the answer and to others in their places: a distribution over labels, also of one answer. Without them an answer weighs 1."`
	Structured  string   `config:"structured" default:"auto" one_of:"auto,json_schema,choice,off" doc:"How the answer is held to the labels: json_schema, or as strictly as the server can; vLLM's structured_outputs choice; or not; auto: json_schema where the prompt wants JSON."`
	Read        string   `config:"read" default:"plain" one_of:"plain,exact" doc:"How an answer is read: plain, as people would where it can mean one label only (markup, quotes, case, Label: x, JSON, fences); exact, only the label letter by letter."`
	Reasons     bool     `config:"reasons" doc:"Keep the model's reasons in the results: the other texts of the JSON object, such as its reasoning."`
	Nearest     float64  `config:"nearest" min:"0" max:"1" doc:"Take an answer for the label that shares most words with it, if their F1 is at least this; 0: off."`
}

// OpenAI describes the voter.
func OpenAI() sdk.Stage {
	return sdk.SampleStage("openai", "Asks a language model behind an OpenAI-compatible server n times for the label.",
		openOpenAI, sdk.Revision("3"), sdk.Reads(sdk.ColumnPrompts), sdk.Network(), sdk.Addresses(openAIConfig.addresses), sdk.PreferBatch(1), sdk.PendsIf(chatmodel.BatchArgument), sdk.Validates(openAIConfig.check))
}

// model is the config of the model.
func (c openAIConfig) model() chatmodel.Config {
	c.Completion = c.Endpoint == "completions"
	return c.Config
}

func (c openAIConfig) addresses() map[string]string { return c.BackendArguments.addresses(c.model()) }

func (c openAIConfig) check() error {
	errs := api.Errors{c.BackendArguments.Check(c.model())}
	apis := append(slices.Collect(maps.Values(c.APIs)), c.API)
	errs.Require(c.Structured != "choice" || !slices.Contains(apis, "anthropic"), "structured", "choice is vLLM's: write \"json_schema\" for Anthropic's API")
	errs.Require(!c.Batch || c.Backends == nil, "batch", "a batch goes to one service: leave out backends")
	return errs.Err()
}

func openOpenAI(_ context.Context, setup sdk.Setup, c openAIConfig) (sdk.Sampler, error) {
	model, samples := c.model(), max(1, setup.Samples)
	model.Choices = min(samples, c.MaxN)
	v := &openAIVoter{
		config:  c,
		set:     NewBackends(model, c.BackendArguments, setup),
		samples: samples,
		reading: support.AnswerOptions{Exact: c.Read == "exact", Nearest: c.Nearest, Reasons: c.Reasons, Many: setup.Labels.Many},
	}
	v.Backend = v.set.All[0]
	return v, nil
}

// question is a prompt with its request, except the number of answers and the seed.
type question struct {
	prompt  sdk.Prompt // as its answers are read
	many    bool       // answers are sets of labels
	tree    *tree      // nil: not asked level by level
	node    string     // of the tree: the question asks for a node below it; empty: for a node of the first level
	request dialect.Request
	bases   []sdk.Key // by backend: digest of the request and of how answers are read
}

func (v *openAIVoter) question(p sdk.Prompt, rejected []sdk.Rejection) (question, error) {
	c, q := v.config, question{prompt: p, many: v.reading.Many && p.Passages == nil}
	if p.Levels != "" && c.Endpoint != "completions" && !slices.Contains(p.Fields, sdk.LabelsProperty) {
		if q.tree = newTree(p); q.tree != nil {
			q.prompt.Labels = q.tree.below[""]
		}
	}
	if err := v.structure(&q); err != nil {
		return q, err
	}
	r := v.Request(c.MaxTokens, q.usual())
	r.Schema, r.Grammar, r.Choice = q.request.Schema, q.request.Grammar, q.request.Choice
	switch {
	case c.Endpoint == "completions" && len(p.Messages) > 0:
		return q, sdk.Invalid(errors.New(`the prompt is a chat, which the completions endpoint does not take; write endpoint = "chat", or prompt with use = "completion"`))
	case c.Endpoint == "completions":
		r.Prompt = p.Text
	case len(p.Messages) == 0:
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: p.Text}}
	default:
		r.Messages = p.Messages
	}
	if r.Messages != nil {
		r.Messages = append(slices.Clip(r.Messages), again(&q, rejected)...)
	}
	if q.tree != nil { // the questions of further levels begin with it
		r.Messages = slices.Clone(r.Messages)
		r.Messages[len(r.Messages)-1].Shared = true
	}
	r.Temperature = &c.Temperature
	if c.TopP < 1 {
		r.TopP = &c.TopP
	}
	if q.prompt.Passages == nil {
		r.Logprobs = c.Logprobs
		if q.prompt.Fields == nil {
			r.Stop = c.stop()
		}
	}
	r.About += ", " + q.answer()
	q.request = r
	q.bases = v.bases(&q)
	return q, nil
}

// answer names the form of the answer, which determines its length.
func (q *question) answer() string {
	switch {
	case q.prompt.Passages != nil:
		return "text"
	case q.prompt.Fields == nil:
		return "line"
	}
	return strings.Join(q.prompt.Fields, " ")
}

// stop returns the texts that end an answer. A chat ends by itself, and may begin with a code fence or with thoughts.
// A model that continues a text does not end by itself.
func (c openAIConfig) stop() []string {
	if c.Stop == nil && c.Endpoint == "completions" {
		return []string{"\n"}
	}
	return c.Stop
}

// Limits on the tokens of an answer if max_tokens is 0.
const (
	labelTokens = 32
	setTokens   = 128
	jsonTokens  = 512
	textTokens  = 1024
)

func (q *question) usual() int {
	switch {
	case q.prompt.Passages != nil:
		return textTokens
	case q.prompt.Fields != nil:
		return jsonTokens
	case q.many:
		return setTokens
	}
	return labelTokens
}

// bases returns, by backend, the keys of a question's answers without the answer's number. A key covers the request
// for the first answer, and how a reply is read before it is cached. What is derived from a cached reply later, such
// as the nearest label, is not part of the key. Backends with the same model have the same key.
func (v *openAIVoter) bases(q *question) (all []sdk.Key) {
	read := "line"
	if q.prompt.Fields != nil {
		read = "object"
	}
	parts := []string{"answer", read}
	if q.request.Logprobs { // the cached probability depends on the labels and on how they are read
		parts = append(append(parts, v.config.Read, q.prompt.None), q.prompt.Labels...)
	}
	for _, b := range v.set.All {
		if b.Same < b.Index {
			all = append(all, all[b.Same])
		} else {
			all = append(all, b.Key(v.numbered(b, q, 0, 1), parts...))
		}
	}
	return all
}

// numbered returns the request to a backend for n answers, starting at a number. Each request has its own seed.
func (v *openAIVoter) numbered(b *Backend, q *question, number, n int) dialect.Request {
	r := q.request
	r.Model, r.N = b.Name(), n
	if v.config.Seed >= 0 {
		seed := v.config.Seed + number
		r.Seed = &seed
	}
	return r
}

// key returns the cache key of a backend's answer with a number.
func (q *question) key(b *Backend, number int) sdk.Key {
	return sdk.KeyOf(string(q.bases[b.Index][:]), strconv.Itoa(number))
}

type openAIVoter struct {
	*Backend // main
	set      *Backends
	config   openAIConfig
	samples  int // per item
	reading  support.AnswerOptions
}

// Close closes idle connections.
func (v *openAIVoter) Close() error { return v.set.Close() }

// Models implements sdk.Prober.
func (v *openAIVoter) Models() []sdk.Model { return v.set.Models() }

// Sample implements sdk.Sampler.
func (v *openAIVoter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	return v.CollectSamples(ctx, "", b)
}

// CollectSamples implements sdk.SampleCollector.
func (v *openAIVoter) CollectSamples(ctx context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	return chatmodel.Later(ctx, v.Model, handle, func(ctx context.Context) ([][]sdk.Sample, error) {
		return api.Rows(ctx, b.Items, v.vote)
	})
}

// vote returns the samples of one item: cached answers, and the server's answers for the rest.
func (v *openAIVoter) vote(ctx context.Context, item sdk.Item) ([]sdk.Sample, error) {
	all, err := v.slots(item)
	if err != nil {
		return nil, err
	}
	for left := all; len(left) > 0; {
		if err := v.answer(ctx, left); err != nil {
			return nil, err
		}
		if left, err = v.next(left); err != nil {
			return nil, err
		}
	}
	var samples []sdk.Sample // without a prompt the model abstains
	for _, s := range all {
		samples = append(samples, s.sample)
	}
	return samples, nil
}

// group collects slots with the same question and service.
type group struct {
	question *question
	backend  *Backend
}

// answer fills slots, from the cache or by asking.
func (v *openAIVoter) answer(ctx context.Context, all []*slot) error {
	var bases []sdk.Key
	for _, s := range all {
		bases = append(bases, s.question.bases[0])
	}
	leave, err := v.Turn(ctx, bases...)
	if err != nil {
		return err
	}
	defer leave()
	missing, err := v.fill(ctx, all)
	if err != nil {
		return err
	}
	var calls errgroup.Group // no context: if one request fails, the answers to others are still cached
	for _, slots := range missing {
		calls.Go(func() error { return v.ask(ctx, slots) })
	}
	return calls.Wait()
}

// fill fills slots from the cache and returns the others.
func (v *openAIVoter) fill(ctx context.Context, all []*slot) (missing map[group][]*slot, err error) {
	keys := make([]sdk.Key, len(all))
	for i, s := range all {
		keys[i] = s.key
	}
	found, err := v.CacheGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	missing = map[group][]*slot{}
	for i, s := range all {
		if !v.take(s, found[i]) {
			of := group{s.question, s.backend}
			missing[of] = append(missing[of], s)
		}
	}
	return missing, nil
}

// slots returns a slot for each answer about an item; slot i is for question i modulo the number of questions.
// Without a prompt there are none.
func (v *openAIVoter) slots(item sdk.Item) ([]*slot, error) {
	questions := make([]*question, min(len(item.Prompts), v.samples))
	if len(questions) == 0 {
		return nil, nil
	}
	for i := range questions {
		q, err := v.question(item.Prompts[(item.Drawn+i)%len(item.Prompts)], item.Rejected)
		if err != nil {
			return nil, err
		}
		questions[i] = &q
	}
	all := make([]*slot, v.samples)
	for i := range all {
		q, number := questions[i%len(questions)], item.Drawn+i
		b := v.set.Choose(q.bases[0], number)
		all[i] = &slot{question: q, number: number, backend: b, key: q.key(b, number)}
	}
	return all, nil
}

// slot holds one sample's answer.
type slot struct {
	question *question
	number   int      // among all samples of the item
	backend  *Backend // that should give the answer
	key      sdk.Key
	given    bool
	reply    reply
	sample   sdk.Sample // by the replies so far
}
