package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
)

// This file says what the calls of a run would come to before any is
// made: items go through the pipeline, and in place of each voter that calls a
// service stands one that only looks at the prompts it is given.
//
// There are two figures, and a voter itself says both (sdk.Forecaster): what is expected,
// and what is taken at most. What is expected counts one sampling of each item, since nobody
// knows how many answers will be accepted; at most, every item is asked as often as
// resamples allows, and each answer has a request of its own. What the response
// cache has is asked for in neither.
//
// There is no bound where a voter does not say one: a plugin of a third party, an answer
// without a limit, a model of which nobody knows whether it thinks. Nor is there one
// where other items may reach the voter than those that did here: the stand-in casts
// no vote, so a later rule that reads votes sees those of the local voters alone.
// Requests that failed and are sent again come on top of both figures where their reply was lost.
//
// Of a voter that says nothing, tokens in are characters divided by four, and tokens out
// as many as max_tokens in its config allows.
//
// What a service may have in its own cache are the beginnings of prompts that stood at
// the beginning of an earlier one, of at least 1,024 tokens, in steps of 128: so OpenAI's.
// Whether it has them is for the service to say.
//
// Enrichers make no dry run: a plan of their knowledge shows them the passages that they
// would be asked about. Of one that says nothing (sdk.EnrichForecaster), what it is
// expected to take is reckoned here from the characters of these, and no bound is known.

// VoterUnknown is why nobody knows what a voter of the pipeline takes at most, whatever
// it says of the items that reached it in a dry run; empty: it is known.
func VoterUnknown(p *pipeline.Pipeline, s *pipeline.Stage) string {
	for _, f := range s.Fallbacks {
		if f.Stage.Info.Network {
			return fmt.Sprintf("its fallback %q calls a service, too", f.Name)
		}
	}
	voter := "" // the first that calls a service: its votes are missing here
	for i, above := range p.Stages {
		switch {
		case !above.Enabled || !p.Used(i):
		case voter != "" && (above.When != nil || above.Keep != nil || above.Retrieve != nil && above.Retrieve.Filter != nil):
			return fmt.Sprintf("what it is asked may depend on the answers of sample.%s", voter)
		case above == s:
			return ""
		case voter == "" && above.Block == "sample" && above.Info.Network:
			voter = above.Name
		}
	}
	return ""
}

// AdditionTokens is how many tokens an enricher's answer is taken to have where its
// config has no max_tokens.
const AdditionTokens = 150

// InstructionTokens is what a request for an addition is taken to hold beside the
// passage and its document, in tokens.
const InstructionTokens = 300

// unsaid is why nobody knows a bound.
const unsaid = "its plugin does not say what a request takes"

// RoughTokens is roughly how many tokens a prompt has.
func RoughTokens(p sdk.Prompt) int {
	n := utf8.RuneCountInString(p.Text)
	for _, m := range p.Messages {
		n += utf8.RuneCountInString(m.Text)
	}
	return sdk.EstimateTokens(n)
}

// maxTokens is what the config of a stage says about its answers; 0: nothing.
func maxTokens(s *pipeline.Stage) int {
	var config struct {
		MaxTokens int `json:"max_tokens"`
	}
	if json.Unmarshal(s.Config.Public, &config) != nil {
		return 0 // it is of another type there
	}
	return max(config.MaxTokens, 0)
}

// EnrichForecast is what an enrich stage would take, as far as anybody knows: what it says
// itself, or roughly what its passages come to, with Addition tokens for each where its config
// does not say how long one is.
func EnrichForecast(a knowledge.Asks) sdk.Forecast {
	if a.Forecast != nil {
		return *a.Forecast
	}
	most := maxTokens(a.Stage)
	if most == 0 {
		most = AdditionTokens
	}
	f := sdk.Forecast{
		Answers: a.Passages, Requests: a.Passages, MostRequests: a.Passages,
		Likely: sdk.Usage{InputTokens: uint64(sdk.EstimateTokens(a.Characters) + a.Passages*InstructionTokens), OutputTokens: uint64(a.Passages * most)},
	}
	if a.Passages > 0 {
		f.Unknown = unsaid
	}
	return f
}

// Forecasts opens the voters of a pipeline that call services, and their fallbacks, and
// returns what says what it takes to ask one of them about an item. open returns nil for
// a voter that does not say; it is not called for others.
func Forecasts(ctx context.Context, p *pipeline.Pipeline, open func(context.Context, *pipeline.Stage) (sdk.Forecaster, error)) (func(*pipeline.Stage, sdk.Item) (sdk.Forecast, error), error) {
	asked := map[*pipeline.Stage]sdk.Forecaster{}
	add := func(s *pipeline.Stage) (err error) {
		if s.Info.Network {
			asked[s], err = open(ctx, s)
		}
		return err
	}
	for _, s := range p.Stages {
		if s.Block != "sample" || !s.Enabled {
			continue
		}
		if err := add(s); err != nil {
			return nil, err
		}
		for _, f := range s.Fallbacks {
			if err := add(f.Stage); err != nil {
				return nil, err
			}
		}
	}
	return func(s *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) { return VoterForecast(s, asked[s], item) }, nil
}

// block is the size of the pieces in which beginnings of prompts are compared, in bytes.
const block = 64

// Services cache a beginning of at least leastCached tokens, in steps of cachedStep: so
// OpenAI's, and others begin no later.
const (
	leastCached = 1024
	cachedStep  = 128
)

// prefixes are the beginnings of the prompts that came by, a hash for each multiple of
// block. They live for one dry run.
type prefixes struct {
	seed maphash.Seed
	seen map[uint64]bool
}

func newPrefixes() *prefixes { return &prefixes{maphash.MakeSeed(), map[uint64]bool{}} }

// shared is how many tokens of an item's requests a service may have cached: those at the
// beginning of an earlier one, of this item or of another, that are enough for it.
func (p *prefixes) shared(prompts []sdk.Prompt, samples int, f sdk.Forecast) uint64 {
	prompts = prompts[:min(len(prompts), samples)]
	if f.Requests == 0 || len(prompts) == 0 {
		return 0
	}
	all, begin := 0, make([]int, f.Requests) // in bytes
	for request := range f.Requests {
		text := textOf(prompts[request%len(prompts)])
		all += len(text)
		begin[request] = p.begin(text)
	}
	cached := uint64(0)
	for _, bytes := range begin {
		tokens := uint64(float64(f.Likely.InputTokens) * float64(bytes) / float64(max(all, 1)))
		if tokens >= leastCached {
			cached += tokens / cachedStep * cachedStep
		}
	}
	return cached
}

// begin returns how many bytes of a text an earlier one begins with, and notes it.
func (p *prefixes) begin(text string) (shared int) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for end := block; end <= len(text); end += block {
		_, _ = h.WriteString(text[end-block : end]) // a hash takes everything
		if p.seen[h.Sum64()] {
			shared = end
		}
		p.seen[h.Sum64()] = true
	}
	return shared
}

// textOf is a prompt as one text.
func textOf(p sdk.Prompt) string {
	text := p.Text
	for _, m := range p.Messages {
		text += m.Role + "\n" + m.Text + "\n"
	}
	return text
}

// DryRun looks at what the voters of a pipeline would ask.
type DryRun struct {
	mu     sync.Mutex
	voters map[string]*VoterAsked
}

// NewDryRun begins a dry run.
func NewDryRun() *DryRun { return &DryRun{voters: map[string]*VoterAsked{}} }

// VoterAsked is what one voter was asked in a dry run. The sum of what it says of the items
// holds one sampling of each, but in its Most and MostRequests all resamples.
type VoterAsked struct {
	Items int // that went to it
	sdk.Forecast
	Shown *sdk.Prompt // one of the prompts; nil: none was read

	shownOf  string    // the item of Shown
	prefixes *prefixes // of prompts so far
}

// Voter returns what a voter was asked so far.
func (d *DryRun) Voter(name string) VoterAsked {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.voters[name]; v != nil {
		return *v
	}
	return VoterAsked{}
}

// Sampler returns what stands in for a voter. It abstains from every vote. Asked is
// the voter itself, which says what it would send; nil: it does not say.
func (d *DryRun) Sampler(s *pipeline.Stage, asked sdk.Forecaster) sdk.Sampler {
	return standIn{d, s, asked}
}

type standIn struct {
	dryRun *DryRun
	stage  *pipeline.Stage
	asked  sdk.Forecaster
}

func (s standIn) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	d := s.dryRun
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.voters[s.stage.Name]
	if v == nil {
		v = &VoterAsked{prefixes: newPrefixes()}
		d.voters[s.stage.Name] = v
	}
	failed := sdk.RowErrors{}
	for i := range b.Items {
		if err := s.add(v, b.Items[i]); err != nil {
			failed[i] = err
		}
	}
	samples := make([][]sdk.Sample, len(b.Items))
	if len(failed) > 0 {
		return samples, failed
	}
	return samples, nil
}

// add counts what an item would come to, with each resample.
func (s standIn) add(v *VoterAsked, item sdk.Item) error {
	samples := max(s.stage.N, 1)
	if prompts := item.Prompts; len(prompts) > 0 && (v.Shown == nil || before(item.ID, v.shownOf)) {
		shown := prompts[0]
		v.Shown, v.shownOf = &shown, item.ID
	}
	v.Items++
	for sampling := range 1 + s.stage.Resamples {
		item.Drawn = sampling * samples
		f, err := VoterForecast(s.stage, s.asked, item)
		if err != nil {
			return err
		}
		if sampling == 0 {
			f.Likely.CachedTokens = v.prefixes.shared(item.Prompts, samples, f)
		} else {
			f = sdk.Forecast{MostRequests: f.MostRequests, Most: f.Most, Unknown: f.Unknown}
		}
		v.Forecast.Add(f)
	}
	return nil
}

// VoterForecast is what a voter says that an item takes or, where it says nothing (asked is
// nil), what the item's prompts and the voter's max_tokens come to.
func VoterForecast(s *pipeline.Stage, asked sdk.Forecaster, item sdk.Item) (sdk.Forecast, error) {
	if asked != nil {
		return asked.Forecast(item)
	}
	samples := max(s.N, 1)
	prompts := item.Prompts
	if len(prompts) == 0 { // a voter that writes its own
		prompts = []sdk.Prompt{{Text: item.Text}}
	}
	prompts = prompts[:min(len(prompts), samples)]
	f := sdk.Forecast{Answers: samples, Requests: len(prompts), MostRequests: samples, Unknown: unsaid}
	for _, p := range prompts {
		f.Likely.InputTokens += uint64(RoughTokens(p))
	}
	f.Likely.OutputTokens = uint64(samples * maxTokens(s))
	return f, nil
}

// before orders items as they are numbered, so that the same prompt is shown
// whatever the order in which they come.
func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
