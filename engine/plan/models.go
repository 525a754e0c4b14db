package plan

import (
	"encoding/json"

	"github.com/racflow/racflow/engine/pipeline"
)

// Model is a language model that a stage asks.
type Model struct {
	Stage    string          `json:"stage,omitempty"` // "sample.llm"; empty: no file names the model
	Endpoint string          `json:"endpoint"`
	Name     string          `json:"model"`
	Profile  json.RawMessage `json:"profile"`        // what is known of it, an object; nil: nothing
	File     string          `json:"file,omitempty"` // where that is kept
}

// Asking is a stage that may ask a language model.
type Asking struct {
	Name  string // "sample.llm"
	Stage *pipeline.Stage
}

// Askings are the voters and enrichers of a pipeline that call services, and their
// fallbacks, in the order in which they are asked.
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
