package plan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Model is a language model that a stage asks.
type Model struct {
	Stage    string          `json:"stage,omitempty"` // "sample.llm"; empty: no file names the model
	Endpoint string          `json:"endpoint"`
	Name     string          `json:"model"`
	Profile  json.RawMessage `json:"profile"`        // known properties of the model, a JSON object; nil: none
	File     string          `json:"file,omitempty"` // where the profile is kept
}

// Asking is a stage of a pipeline that may ask a language model.
type Asking struct {
	Name  string // "sample.llm"
	Stage *pipeline.Stage
}

// Shown returns the name and the address of a stage's model as they may be shown.
func (a Asking) Shown(m sdk.Model) (name, endpoint string) {
	o := a.Stage.Config.Origins
	return o["model"].Shown(m.Name()), o["base_url"].Shown(m.Endpoint())
}

// Askings returns the voters and enrichers of a pipeline that call services, and their fallbacks,
// in the order in which they are asked.
func Askings(p *pipeline.Pipeline) []Asking {
	var all []Asking
	add := func(name string, s *pipeline.Stage) {
		if s.Info.Network {
			all = append(all, Asking{name, s})
		}
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Enrich {
			if s.Enabled {
				add("enrich."+s.Name, s)
			}
		}
	}
	for i, s := range p.Stages {
		if s.Block != "sample" || !s.Enabled || !p.Used(i) {
			continue
		}
		add("sample."+s.Name, s)
		for _, f := range s.Fallbacks {
			add("sample."+s.Name+", fallback "+f.Name, f.Stage)
		}
	}
	return all
}

// own is how many of a pipeline's own prompts are sent to measure its answers: enough for a first
// mean, few enough to cost little.
const own = 3

// remember keeps the first items that reached a voter with a prompt.
func (v *VoterAsked) remember(item sdk.Item) {
	at := slices.IndexFunc(v.first, func(other sdk.Item) bool { return before(item.ID, other.ID) })
	if at < 0 {
		at = len(v.first)
	}
	if at < own && len(item.Prompts) > 0 {
		v.first = slices.Insert(v.first, at, item)
		v.first = v.first[:min(len(v.first), own)]
	}
}

// Shown returns one of the prompts, whose choice does not depend on the order of the items; nil:
// none was read.
func (v VoterAsked) Shown() *sdk.Prompt {
	if len(v.first) == 0 {
		return nil
	}
	return &v.first[0].Prompts[0]
}

// Single returns the stage of a, changed to send single calls instead of batches.
func (a Asking) Single() *pipeline.Stage {
	s := *a.Stage
	var config map[string]any
	if !s.Gathers() || json.Unmarshal(s.Config.Open, &config) != nil {
		return &s
	}
	config[s.Info.PendsIf] = false
	s.Config.Open, _ = json.Marshal(config) // it was JSON
	return &s
}

// AskOwn asks a stage about the first items that reached it in the dry run, or about the first passages
// that it has yet to enrich. opened is Asking.Single. The stage keeps what it learns about the model
// from the replies. The response cache keeps the answers for a later run.
func (p *Plan) AskOwn(ctx context.Context, a Asking, opened any) (err error) {
	switch o := opened.(type) {
	case sdk.Sampler:
		if p.Forecast != nil && slices.Contains(p.Pipeline.Stages, a.Stage) {
			_, err = o.Sample(ctx, sdk.Batch{Items: p.Forecast.Voters[a.Stage.Name].first})
		}
	case sdk.Enricher:
		for _, k := range p.Knowledge {
			for _, asks := range k.Asks {
				if asks.Stage == a.Stage {
					_, err = o.Enrich(ctx, asks.First)
				}
			}
		}
	}
	if errors.As(err, new(sdk.RowErrors)) { // the other rows suffice
		return nil
	}
	return err
}
