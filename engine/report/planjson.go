package report

import (
	"encoding/json"
	"io"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/sdk"
)

// The JSON form of a plan.
type (
	planJSON struct {
		Items     int             `json:"items"` // -1: not known before the input is read
		Invalid   int             `json:"invalid_rows,omitempty"`
		Knowledge []knowledgeJSON `json:"knowledge,omitempty"`
		Unknown   string          `json:"unknown,omitempty"` // why nothing is forecast
		Tried     int             `json:"items_tried,omitempty"`
		Stages    []callsJSON     `json:"stages,omitempty"` // that call services
		Plugins   []pluginJSON    `json:"plugins,omitempty"`
		Memory    int64           `json:"memory,omitempty"` // bytes that all processes may hold together
		Expects   []expectJSON    `json:"expects,omitempty"`
	}
	expectJSON struct {
		Name    string `json:"name"`
		Rule    string `json:"rule"`
		Enabled bool   `json:"enabled"`
	}
	knowledgeJSON struct {
		Name    string `json:"name"`
		Entries int    `json:"entries"`
		ToEmbed int    `json:"to_embed"`
		Tokens  int    `json:"tokens,omitempty"` // of texts that a service would embed, about, at most
		Removed int    `json:"to_remove"`

		Attached *attachedJSON `json:"attached,omitempty"` // a collection that somebody else makes
	}
	callsJSON struct {
		Stage    string      `json:"stage"`
		Items    int         `json:"items"`
		Answers  int         `json:"answers"`
		Cached   int         `json:"answers_from_cache"`
		Price    *priceJSON  `json:"price,omitempty"` // of a million tokens, in batches where the stage asks in those
		Expected *amountJSON `json:"expected,omitempty"`
		AtMost   *amountJSON `json:"at_most,omitempty"`
		Unknown  string      `json:"at_most_unknown,omitempty"` // why
	}
	amountJSON struct {
		Requests int      `json:"requests"`
		Input    uint64   `json:"input_tokens"`
		Cached   uint64   `json:"may_be_cached_tokens,omitempty"` // of Input, by the service
		Output   uint64   `json:"output_tokens"`
		Cost     *float64 `json:"cost,omitempty"` // by the price
	}
	priceJSON struct {
		Input  float64 `json:"input"`
		Cached float64 `json:"cached"`
		Output float64 `json:"output"`
		From   string  `json:"from,omitempty"` // empty: the file
	}
)

// PlanJSON writes the numbers of a plan as a JSON object.
func PlanJSON(w io.Writer, p *plan.Plan) error {
	shown := planJSON{Items: p.Items, Invalid: p.Invalid, Memory: p.Pipeline.Memory}
	for _, one := range p.Plugins {
		shown.Plugins = append(shown.Plugins, pluginOf(one))
	}
	for _, e := range p.Pipeline.Expects {
		shown.Expects = append(shown.Expects, expectJSON{e.Name, e.Rule.Text(), e.Enabled})
	}
	for _, k := range p.Knowledge {
		one := knowledgeJSON{Name: k.Name, Entries: k.Entries, ToEmbed: k.Added + k.Changed, Removed: k.Removed, Attached: attachedOf(k.Attached)}
		if t, ok := p.Texts[k.Name]; ok {
			one.Entries, one.ToEmbed, one.Tokens = t.Count, t.Count, t.Tokens
		}
		shown.Knowledge = append(shown.Knowledge, one)
		for _, a := range k.Asks {
			f := estimate.Enrichment(a)
			shown.Stages = append(shown.Stages, callsOf("enrich."+a.Stage.Name, a.Stage, a.Passages, f))
		}
	}
	if f := p.Forecast; f != nil {
		shown.Unknown, shown.Tried = f.Unknown, f.Tried
		if f.Unknown == "" {
			for _, c := range p.Calls() {
				shown.Stages = append(shown.Stages, callsOf("sample."+c.Stage.Name, c.Stage, c.Items, c.Forecast))
			}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(shown)
}

// callsOf is what a stage would ask about so many items.
func callsOf(name string, s *pipeline.Stage, items int, f sdk.Forecast) callsJSON {
	c := callsJSON{
		Stage: name, Items: items, Answers: f.Answers, Cached: f.Cached, Unknown: f.Unknown,
		Expected: &amountJSON{Requests: f.Requests, Input: f.Likely.InputTokens, Cached: f.Likely.CachedTokens, Output: f.Likely.OutputTokens},
	}
	if f.Unknown == "" {
		c.AtMost = &amountJSON{Requests: f.MostRequests, Input: f.Most.InputTokens, Output: f.Most.OutputTokens}
	}
	if p := s.CallPrice(); p != nil {
		c.Price = &priceJSON{p.Input, p.Cached, p.Output, s.PriceFrom}
		c.Expected.Cost = new(p.Expected(f.Likely))
		if c.AtMost != nil {
			c.AtMost.Cost = new(p.AtMost(f.Most))
		}
	}
	return c
}
