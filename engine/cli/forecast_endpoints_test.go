package cli

import (
	"math"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// endpoint is a scripted service with the pipeline that asks it.
//
// The table was written before any measurement with it, and no endpoint has changed since. All
// endpoints have in common:
//
//   - A token is four bytes of text, unless perToken says otherwise. A chat has 8 extra tokens, and
//     each message 4. A JSON schema counts as input.
//   - Answers and thoughts are drawn by the hash of the question, so the same question always gets the
//     same. The label is an allowed one; a share of unusable answers names no allowed label.
//   - The toy question of a probe gets half as many thoughts as the median of thinks.
//   - 40 texts of 8 to 40 words are classified into 12 labels, in a prompt with examples.
//   - A million tokens cost 1 for input and 5 for output.
//   - If a prompt begins like an earlier one, the common beginning is reported as cached. It costs the
//     same as the rest, unless cachedPrice is set.
//
// Before the forecast, the model is known as far as known says.
type endpoint struct {
	name  string
	known acquaintance

	prompt      string // the prompt block's use: "completion", "chat", or "answer" for the documents of contextual
	reasoning   bool   // the chat asks for a reasoning before the label
	random      int    // random examples of a completion prompt, the same in all prompts
	language    string // of the texts; empty: english
	n           int
	resamples   int
	when        string // the voter's when rule
	config      string // further arguments of the voter
	cachedPrice float64

	server   modelserver.Options // without the parts that the fields below script
	perToken func(text string) int
	thinks   func(*rand.Rand) float64 // tokens of thoughts before one answer; nil: none
	reasons  [2]int                   // least and most words of a reasoning, or of a text that cites passages
	unusable float64                  // share of answers that name no label, or cite no passage
}

// acquaintance says what is known about a model before the forecast.
type acquaintance int

const (
	unasked    acquaintance = iota // nobody has asked it
	afterProbe                     // racflow model probe was run with the pipeline
	afterRun                       // the pipeline was run with 24 other texts
)

// bytesPerToken counts n bytes as a token.
func bytesPerToken(n float64) func(string) int {
	return func(text string) int { return int(math.Ceil(float64(len(text)) / n)) }
}

// Distributions of the thoughts' lengths.
var (
	constant = func(n float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return n } }
	uniform  = func(least, most float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return least + r.Float64()*(most-least) }
	}
	lognormal = func(median, sigma float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
	}
	pareto = func(least, alpha float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return least / math.Pow(1-r.Float64(), 1/alpha) }
	}
	sometimes = func(share, n float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 {
			if r.Float64() < share {
				return n
			}
			return 0
		}
	}
)

var endpoints = []endpoint{
	// Models that nobody has asked.
	{name: "a plain model that nobody has asked", known: unasked, prompt: "completion", n: 1},
	{name: "a thinking model that nobody has asked: 300 to 900 tokens, in a field of their own", known: unasked,
		prompt: "chat", n: 1, server: modelserver.Options{Thinks: modelserver.InAField}, thinks: uniform(300, 900)},

	// Tokens and prompts.
	{name: "Chinese texts, a token for each character of them", known: afterProbe, prompt: "completion", n: 1, language: "chinese",
		perToken: func(text string) int {
			characters := utf8.RuneCountInString(text)
			wide := (len(text) - characters) / 2 // with three bytes each
			return wide + (characters-wide+3)/4
		}},
	{name: "German texts, an old tokenizer with 2.6 bytes to a token", known: afterProbe, prompt: "chat", n: 1, language: "german", perToken: bytesPerToken(2.6)},
	{name: "examples that all prompts begin with, cached at a tenth of the price", known: afterRun,
		prompt: "completion", random: 60, n: 1, cachedPrice: .1},

	// Choices.
	{name: "six choices of one request, with a reasoning of 15 to 45 words", known: afterProbe, prompt: "chat", reasoning: true, n: 6, reasons: [2]int{15, 45}},
	{name: "six choices wanted, four slots, as llama.cpp has", known: afterProbe, prompt: "completion", n: 6, server: modelserver.Options{MaxN: 4}},
	{name: "five choices wanted, one given; 429 to the first three requests", known: afterProbe, prompt: "completion", n: 5,
		server: modelserver.Named("ignores-n", "busy-in-milliseconds")},
	{name: "three messages of Anthropic's API, for items on which the free voter is unsure", known: afterProbe,
		prompt: "chat", n: 3, when: "margin < 0.6", config: `api = "anthropic"`},

	// Answers.
	{name: "a reasoning of 150 to 250 words", known: afterProbe, prompt: "chat", reasoning: true, n: 1, reasons: [2]int{150, 250}},
	{name: "neither json_schema nor json_object is taken", known: afterProbe, prompt: "chat", reasoning: true, n: 2, reasons: [2]int{10, 60},
		server: modelserver.Named("refuses-object")},
	{name: "replies do not say what they used", known: afterProbe, prompt: "chat", reasoning: true, n: 1, reasons: [2]int{20, 40},
		server: modelserver.Options{Usage: modelserver.UsageMissing}},
	{name: "15 % of the answers are unusable, two resamples", known: afterRun, prompt: "chat", n: 1, resamples: 2, unusable: .15},
	{name: "batches at half the price", known: afterProbe, prompt: "chat", reasoning: true, n: 1, reasons: [2]int{15, 45}, config: "batch = true"},

	// Thoughts.
	{name: "silent thoughts, always 320 tokens; no temperature, no max_tokens, one choice of three", known: afterProbe, prompt: "completion", n: 3,
		server: modelserver.Named("reasons-like-openai"), thinks: constant(320)},
	{name: "200 to 600 tokens in tags", known: afterProbe, prompt: "completion", n: 3, server: modelserver.Options{Thinks: modelserver.InTags}, thinks: uniform(200, 600)},
	{name: "thoughts with a tail: log-normal, median 400, sigma 0.8", known: afterProbe, prompt: "chat", n: 1,
		server: modelserver.Options{Thinks: modelserver.InAField}, thinks: lognormal(400, .8)},
	{name: "silent thoughts with a heavy tail: Pareto from 150 on, alpha 1.6", known: afterRun, prompt: "chat", n: 3,
		server: modelserver.Options{Thinks: modelserver.Silently}, thinks: pareto(150, 1.6)},
	{name: "one answer of five is thought about, 1,000 tokens long", known: afterRun, prompt: "chat", n: 3,
		server: modelserver.Options{Thinks: modelserver.InAField}, thinks: sometimes(.2, 1000)},

	// Documents.
	{name: "documents whose chunks have no contexts yet, answers of 40 to 120 words", known: afterProbe, prompt: "answer", n: 1, resamples: 1, reasons: [2]int{40, 120}, unusable: .05},
}
