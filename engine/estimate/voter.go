package estimate

import (
	"context"
	"sync"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// DryRun looks at what the voters of a pipeline would ask.
type DryRun struct {
	mu     sync.Mutex
	voters map[string]*Voter
}

// NewDryRun begins a dry run.
func NewDryRun() *DryRun { return &DryRun{voters: map[string]*Voter{}} }

// Voter is what one voter was asked in a dry run. The sum of what it says of the items
// holds one sampling of each, but in its Most and MostRequests all resamples.
type Voter struct {
	Items int // that went to it
	sdk.Forecast
	Shown *sdk.Prompt // one of the prompts; nil: none was read

	shownOf  string    // the item of Shown
	prefixes *prefixes // of prompts so far
}

// Voter returns what a voter was asked so far.
func (d *DryRun) Voter(name string) Voter {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.voters[name]; v != nil {
		return *v
	}
	return Voter{}
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
		v = &Voter{prefixes: newPrefixes()}
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
func (s standIn) add(v *Voter, item sdk.Item) error {
	samples := max(s.stage.N, 1)
	if prompts := item.Prompts; len(prompts) > 0 && (v.Shown == nil || before(item.ID, v.shownOf)) {
		shown := prompts[0]
		v.Shown, v.shownOf = &shown, item.ID
	}
	v.Items++
	for sampling := range 1 + s.stage.Resamples {
		item.Drawn = sampling * samples
		f, err := Forecast(s.stage, s.asked, item)
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

// Forecast is what a voter says that an item takes or, where it says nothing (asked is
// nil), what the item's prompts and the voter's max_tokens come to.
func Forecast(s *pipeline.Stage, asked sdk.Forecaster, item sdk.Item) (sdk.Forecast, error) {
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
		f.Likely.InputTokens += uint64(Tokens(p))
	}
	f.Likely.OutputTokens = uint64(samples * maxTokens(s))
	return f, nil
}

// before orders items as they are numbered, so that the same prompt is shown
// whatever the order in which they come.
func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
