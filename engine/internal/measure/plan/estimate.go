package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
)

// This file forecasts the calls of a run before any is made: items go through the
// pipeline, and a stand-in that only reads the prompts replaces each voter that calls a
// service.
//
// A voter itself forecasts two figures (sdk.Forecaster): the expected usage, and the highest usage
// (the most). The expected usage counts one sampling of each item, because the number of accepted
// answers is unknown. The most counts every sampling that resamples allows, and one request for
// each answer. Neither counts what the response cache has.
//
// The most is unknown if the voter gives none: a third party's plugin, an answer without a limit, a
// model that may or may not think. It is also unknown if a run may send the voter other items than
// the dry run: the stand-in casts no vote, so a later rule that reads votes sees only the votes of
// local voters. A request whose reply is lost is sent again, which both figures leave out.
//
// For a voter without a forecast, input tokens are characters divided by four, and output
// tokens are max_tokens of its config.
//
// If a model thinks before it answers, the expected output is a range. The range becomes narrower
// with the answers that earlier runs have seen, or racflow model probe, which sends a few of the
// pipeline's own prompts.
//
// Enrichers make no dry run: a plan of the knowledge gives them the passages to ask about. For an
// enricher without a forecast (sdk.EnrichForecaster), the expected usage is estimated here from the
// characters of the passages, and the most is unknown.

// voterUnknown returns why a voter's highest usage is unknown, even if it forecasts the items of a
// dry run; empty: it is known.
func voterUnknown(p *pipeline.Pipeline, s *pipeline.Stage) string {
	for _, f := range s.Fallbacks {
		if f.Stage.Info.Network {
			return fmt.Sprintf("its fallback %q calls a service, too", f.Name)
		}
	}
	voter := "" // the first voter that calls a service: its votes are missing in a dry run
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

// additionTokens is the assumed length of an enricher's answer if its config has no max_tokens.
const additionTokens = 150

// instructionTokens is the assumed length in tokens of a request for an addition, without the
// passage and its document.
const instructionTokens = 300

// unsaid is the reason why the highest usage is unknown if a plugin gives no forecast.
const unsaid = "its plugin does not say what a request takes"

// roughTokens estimates how many tokens a prompt has.
func roughTokens(p sdk.Prompt) int {
	n := utf8.RuneCountInString(p.Text)
	for _, m := range p.Messages {
		n += utf8.RuneCountInString(m.Text)
	}
	return sdk.EstimateTokens(n)
}

// maxTokens returns max_tokens of a stage's config; 0: it has none.
func maxTokens(s *pipeline.Stage) int {
	var config struct {
		MaxTokens int `json:"max_tokens"`
	}
	if json.Unmarshal(s.Config.Public, &config) != nil {
		return 0 // this stage's max_tokens has another type
	}
	return max(config.MaxTokens, 0)
}

// EnrichForecast returns what an enrich stage would use: its own forecast, or an estimate from its
// passages, with additionTokens for each if its config has no max_tokens.
func EnrichForecast(a knowledge.Asks) sdk.Forecast {
	if a.Forecast != nil {
		return *a.Forecast
	}
	most := maxTokens(a.Stage)
	if most == 0 {
		most = additionTokens
	}
	f := sdk.Forecast{
		Answers: a.Passages, Requests: a.Passages, MostRequests: a.Passages,
		Likely: sdk.Usage{InputTokens: uint64(sdk.EstimateTokens(a.Characters) + a.Passages*instructionTokens), OutputTokens: uint64(a.Passages * most)},
	}
	f.Low, f.High = f.Likely.OutputTokens, f.Likely.OutputTokens
	if a.Passages > 0 {
		f.Unknown = unsaid
	}
	return f
}

// Forecasts opens the voters of a pipeline that call services, and their fallbacks. The returned
// function forecasts what one of them uses to answer an item. open returns nil for a voter without
// forecasts; it is not called for voters that call no service.
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
	return func(s *pipeline.Stage, item sdk.Item) (sdk.Forecast, error) { return voterForecast(s, asked[s], item) }, nil
}

// dryRun records what the voters of a pipeline would ask.
type dryRun struct {
	mu     sync.Mutex
	voters map[string]*VoterAsked
}

// newDryRun begins a dry run.
func newDryRun() *dryRun { return &dryRun{voters: map[string]*VoterAsked{}} }

// VoterAsked is what one voter was asked in a dry run. Its Forecast sums up one sampling of each
// item; only Most and MostRequests include all resamples.
type VoterAsked struct {
	Items int // items that reached the voter
	sdk.Forecast

	first []sdk.Item // that reached it with a prompt, by their numbers
}

// voter returns a copy of what a voter was asked so far.
func (d *dryRun) voter(name string) VoterAsked {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.voters[name]; v != nil {
		return *v
	}
	return VoterAsked{}
}

// sampler returns a stand-in for a voter, which abstains from every vote. asked is the voter's own
// forecaster; nil: it has none.
func (d *dryRun) sampler(s *pipeline.Stage, asked sdk.Forecaster) sdk.Sampler {
	return standIn{d, s, asked}
}

type standIn struct {
	dryRun *dryRun
	stage  *pipeline.Stage
	asked  sdk.Forecaster
}

func (s standIn) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	d := s.dryRun
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.voters[s.stage.Name]
	if v == nil {
		v = &VoterAsked{}
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

// Fingerprint returns the voter's fingerprint, because elections keep what they learnt about a
// voter under its fingerprint.
func (s standIn) Fingerprint() string { return s.stage.Info.Fingerprint(s.asked) }

// add adds the forecast of an item, with each resample.
func (s standIn) add(v *VoterAsked, item sdk.Item) error {
	samples := max(s.stage.N, 1)
	v.Items++
	v.remember(item)
	for sampling := range 1 + s.stage.Resamples {
		item.Drawn = sampling * samples
		f, err := voterForecast(s.stage, s.asked, item)
		if err != nil {
			return err
		}
		if sampling > 0 {
			f = sdk.Forecast{MostRequests: f.MostRequests, Most: f.Most, Unknown: f.Unknown}
		}
		v.Forecast.Add(f)
	}
	return nil
}

// voterForecast returns what a voter forecasts for an item or, if asked is nil, an estimate from
// the item's prompts and the voter's max_tokens.
func voterForecast(s *pipeline.Stage, asked sdk.Forecaster, item sdk.Item) (sdk.Forecast, error) {
	if asked != nil {
		return asked.Forecast(item)
	}
	samples := max(s.N, 1)
	prompts := item.Prompts
	if len(prompts) == 0 { // the voter writes its own prompts
		prompts = []sdk.Prompt{{Text: item.Text}}
	}
	prompts = prompts[:min(len(prompts), samples)]
	f := sdk.Forecast{Answers: samples, Requests: len(prompts), MostRequests: samples, Unknown: unsaid}
	for _, p := range prompts {
		f.Likely.InputTokens += uint64(roughTokens(p))
	}
	f.Likely.OutputTokens = uint64(samples * maxTokens(s))
	f.Low, f.High = f.Likely.OutputTokens, f.Likely.OutputTokens
	return f, nil
}

// before orders items by their numbers, so that the shown prompt does not depend on the order of
// arrival.
func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
