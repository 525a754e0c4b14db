package profile

import (
	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Apply returns the request as the model takes it. What is unknown stays as it is, and so
// does what the request itself decides: its Form, its MaxTokensField, its Stream.
func (p Profile) Apply(r dialect.Request) dialect.Request {
	for _, f := range fields {
		if *f.of(&p) == No {
			f.remove(&r)
		}
	}
	if p.Temperature == No && p.TopP != Yes { // models that refuse one refuse the other
		r.TopP = nil
	}
	if p.Thinks == Yes {
		r.Stop = nil // it might end the thoughts
	}
	switch {
	case r.MaxTokensField != "" || p.Limit == "":
	case p.Limit == LimitNone:
		r.MaxTokens = 0
	default:
		r.MaxTokensField = string(p.Limit)
	}
	if r.MaxTokens > 0 { // also a person's limit, which is that of the answer: no model can think in the ten tokens of a label
		r.MaxTokens += p.ThoughtTokens()
	}
	if r.Schema != nil && r.Form == dialect.FormSchema {
		r.Form = p.Structured.form()
	}
	if p.Structured == StructureText {
		r.Grammar = ""
	}
	if p.Streaming == Yes {
		r.Stream = true
	}
	return r
}

// field is one of a request that a model may refuse.
type field struct {
	name   string // that a refusal has for it
	of     func(*Profile) *Finding
	has    func(dialect.Request) bool
	add    func(*dialect.Request) // a value to probe with; nil: it is not probed
	remove func(*dialect.Request)
}

// probeStop ends an answer to a probe: what most stages stop at.
const probeStop = "\n"

var fields = []field{
	{
		name: "temperature", of: func(p *Profile) *Finding { return &p.Temperature },
		has:    func(r dialect.Request) bool { return r.Temperature != nil },
		add:    func(r *dialect.Request) { r.Temperature = new(0.5) }, // some servers refuse 0 beside n
		remove: func(r *dialect.Request) { r.Temperature = nil },
	},
	{
		name: "n", of: func(p *Profile) *Finding { return &p.N },
		has:    func(r dialect.Request) bool { return r.N > 1 },
		add:    func(r *dialect.Request) { r.N = 2 },
		remove: func(r *dialect.Request) { r.N = min(r.N, 1) },
	},
	{
		name: "seed", of: func(p *Profile) *Finding { return &p.Seed },
		has:    func(r dialect.Request) bool { return r.Seed != nil },
		add:    func(r *dialect.Request) { r.Seed = new(1) },
		remove: func(r *dialect.Request) { r.Seed = nil },
	},
	{
		name: "stop", of: func(p *Profile) *Finding { return &p.Stop },
		has:    func(r dialect.Request) bool { return r.Stop != nil },
		add:    func(r *dialect.Request) { r.Stop = []string{probeStop} },
		remove: func(r *dialect.Request) { r.Stop = nil },
	},
	{
		name: "logprobs", of: func(p *Profile) *Finding { return &p.Logprobs },
		has:    func(r dialect.Request) bool { return r.Logprobs },
		add:    func(r *dialect.Request) { r.Logprobs = true },
		remove: func(r *dialect.Request) { r.Logprobs = false },
	},
	{
		name: "top_p", of: func(p *Profile) *Finding { return &p.TopP },
		has:    func(r dialect.Request) bool { return r.TopP != nil },
		remove: func(r *dialect.Request) { r.TopP = nil },
	},
	{
		name: "reasoning_effort", of: func(p *Profile) *Finding { return &p.Effort },
		has:    func(r dialect.Request) bool { return r.Effort != "" },
		remove: func(r *dialect.Request) { r.Effort = "" },
	},
}
