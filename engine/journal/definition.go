package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// Define sets what the manifest says of a pipeline: the hashes of its parts, as
// far as answers depend on them. Limits, budgets, retries, timeouts and batches may differ
// between a run and what goes on with it.
func (m *Manifest) Define(f *pipeline.File, p *pipeline.Pipeline) {
	m.Pipeline, m.Parts = p.Name, map[string]string{}
	var rules, order []string
	for _, s := range p.Stages {
		if !s.Enabled {
			continue
		}
		name := s.Block + "." + s.Name
		m.Parts[name] = hash(definitionOf(s))
		order = append(order, name)
		rules = append(rules, rulesOf(s)...)
	}
	m.Parts["the order of the stages"] = hash(order)
	if in := p.Input; in != nil {
		m.Parts["the columns of the input"] = hash([]any{in.Format, in.ID, in.Text, in.Label, in.Gold, in.Meta})
	}
	for _, v := range f.Variables {
		m.Variables = append(m.Variables, Variable{v.Name, v.Value, v.From})
		// The values of others are in what was made of them.
		if slices.ContainsFunc(rules, func(text string) bool { return strings.Contains(text, v.Name) }) {
			m.Parts["var."+v.Name] = hash(v.Value)
		}
	}
	m.Definition = hash(m.Parts)
}

// definition is what the answers of a stage depend on.
type definition struct {
	Block, Use     string
	Samples, Tries int
	TopK           int `json:",omitempty"`
	Config         json.RawMessage
	From           string
	Ranking        sdk.Ranking
	Rules          []string
	OnError        pipeline.OnError
	Fallbacks      []definition
}

func definitionOf(s *pipeline.Stage) definition {
	d := definition{
		Block: s.Block, Use: s.Use, Samples: s.N, Tries: s.Tries, TopK: s.TopK, Config: s.Config.Identity,
		Rules: rulesOf(s), OnError: cmp.Or(s.OnError, pipeline.FailItem),
	}
	if r := s.Retrieve; r != nil {
		d.From, d.Ranking = r.From.Name, r.Ranking
	}
	for _, f := range s.Fallbacks {
		d.Fallbacks = append(d.Fallbacks, definitionOf(f.Stage))
	}
	return d
}

// rulesOf returns the texts of a stage's rules, each in its place.
func rulesOf(s *pipeline.Stage) []string {
	text := func(r *rule.Rule) string {
		if r == nil {
			return ""
		}
		return r.Text()
	}
	texts := []string{text(s.When), text(s.Keep), text(s.Accept), text(s.Flag), ""}
	if s.Retrieve != nil && s.Retrieve.Filter != nil {
		texts[4] = s.Retrieve.Filter.Text()
	}
	if s.Retrieve != nil && s.Retrieve.Whole != nil {
		texts = append(texts, s.Retrieve.Whole.Text())
	}
	for _, f := range s.Fallbacks {
		texts = append(texts, text(f.When))
		texts = append(texts, rulesOf(f.Stage)...)
	}
	return texts
}

// hash is that of a value's JSON. Parts are few, so half of it tells them apart.
func hash(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and checked JSON always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
