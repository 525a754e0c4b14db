package pipeline

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/engine/source"
	"github.com/racflow/racflow/sdk"
)

// own are the arguments of each block that does something, beyond those of
// every such block.
var own = map[string][]string{
	"chunk":    {"use"},
	"enrich":   {"use", "enabled", "embed", "lexical", "limit"},
	"embed":    {"use", "limit"},
	"store":    {"use", "analyzer"},
	"retrieve": {"from", "top_k", "depth", "mode", "fusion", "dense_weight", "rrf_k", "filter", "whole", "keep"},
	"rerank":   {"use", "top_k", "keep", "limit"},
	"prompt":   {"use"},
	"sample":   {"use", "n", "tries", "accept", "limit"},
	"elect":    {"use", "accept", "flag"},
}

var (
	everywhere = []string{"batch", "workers", "retries", "timeout"}
	perItem    = []string{"enabled", "when", "on_error"} // of a pipeline's stages

	priced = []string{"enrich", "embed", "rerank", "sample"} // blocks that say what their calls cost
)

// How often a call is repeated after a transient failure where the file does
// not say. A service that asks for patience may ask several times.
const (
	retries        = 2
	networkRetries = 5
)

// place is where a stage stands: what its rules may read.
type place struct {
	knowledge *Knowledge // of a store block
	scope     rule.Scope // what stands above
}

func (l *loader) readPipeline(b *hcl.Block) *Pipeline {
	p := &Pipeline{Name: b.Labels[0], Range: b.DefRange}
	schema := &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "batch"}, {Name: "max_cost"}, {Name: "max_tokens"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "input"}}}
	for _, typ := range []string{"retrieve", "rerank", "prompt", "sample", "elect"} {
		schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: typ, LabelNames: []string{"name"}})
	}
	content, diags := b.Body.Content(schema)
	l.add(diags)
	a := arguments{l, content.Attributes}
	p.Batch = a.int("batch", 0, 1)
	p.Budget = a.budget()
	var stages hcl.Blocks
	for _, s := range content.Blocks {
		if s.Type != "input" {
			stages = append(stages, s)
			continue
		}
		if p.Input != nil {
			l.fault(s.DefRange, "Duplicate block", "A pipeline has one input block; there is one on line %d already.", p.Input.Range.Start.Line)
			continue
		}
		in := l.readSource(s, l.Input, false)
		p.Input = &in
	}
	if p.Input == nil && l.Input != "" {
		path := absolute(l.Input, l.Dir)
		p.Input = &Source{Path: path, Format: string(source.FormatOf(path)), ID: "id", Text: "text", Label: "label", Gold: "gold"}
	}
	at := place{scope: rule.Scope{Vars: l.seen()}}
	for _, s := range l.distinct(stages) {
		p.Stages = append(p.Stages, l.readStage(s, at))
		switch s.Type {
		case "retrieve":
			at.scope.Candidates = true
		case "sample":
			at.scope.Voters = true
		}
	}
	p.countPrompts()
	l.checkBudget(p, content.Attributes)
	if !diags.HasErrors() { // an unknown block may be a misspelled stage
		l.checkStructure(p)
	}
	return p
}

// stageBody is what is written in a stage's block.
type stageBody struct {
	block     *hcl.Block
	attrs     hcl.Attributes
	configs   []*hclsyntax.Block
	prices    hcl.Blocks
	fallbacks hcl.Blocks
}

// body reads a block whose arguments have these names. Config blocks have no
// label or one, which no HCL schema can say, so they are taken out first.
func (l *loader) body(b *hcl.Block, names []string, nested ...string) stageBody {
	body := *b.Body.(*hclsyntax.Body)
	s := stageBody{block: b}
	if slices.Contains(nested, "config") {
		var rest hclsyntax.Blocks
		for _, n := range body.Blocks {
			if n.Type == "config" {
				s.configs = append(s.configs, n)
			} else {
				rest = append(rest, n)
			}
		}
		body.Blocks = rest
		l.checkConfigBlocks(s.configs)
	}
	schema := &hcl.BodySchema{}
	for _, n := range names {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: n})
	}
	if slices.Contains(nested, "fallback") {
		schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: "fallback", LabelNames: []string{"name"}})
	}
	if slices.Contains(nested, "price") {
		schema.Blocks = append(schema.Blocks, hcl.BlockHeaderSchema{Type: "price"})
	}
	content, diags := body.Content(schema)
	l.add(diags)
	s.attrs, s.fallbacks, s.prices = content.Attributes, content.Blocks.OfType("fallback"), content.Blocks.OfType("price")
	return s
}

func (l *loader) readStage(b *hcl.Block, at place) *Stage {
	names := append(everywhere[:len(everywhere):len(everywhere)], own[b.Type]...)
	var nested []string
	if slices.Contains(own[b.Type], "use") {
		nested = append(nested, "config")
	}
	if slices.Contains(priced, b.Type) {
		nested = append(nested, "price")
	}
	inPipeline := len(b.Labels) > 0
	if !inPipeline {
		body := l.body(b, names, nested...)
		s := l.makeStage(body, at)
		l.checkCalls(s, body)
		return s
	}
	body := l.body(b, append(names, perItem...), append(nested, "fallback")...)
	l.override(&body, append(names, perItem...))
	s := l.makeStage(body, at)
	l.checkKeep(s, body.attrs)
	l.checkCalls(s, body)
	for _, f := range l.distinct(body.fallbacks) {
		s.Fallbacks = append(s.Fallbacks, l.readFallback(s, body, l.body(f, append(names, "when"), nested...), at))
	}
	return s
}

// readFallback reads a fallback as the stage it stands in, with the arguments
// that it changes. A config of the stage holds on for the fallback, except an
// unlabelled one when the fallback uses another plugin; so does keep, except
// when the fallback searches in another mode or reranks by another plugin, which
// gives other scores.
func (l *loader) readFallback(s *Stage, stage, change stageBody, at place) Fallback {
	f := Fallback{Name: change.block.Labels[0]}
	seen := at.scope
	seen.Candidates = seen.Candidates || stage.block.Type == "retrieve"
	defer func(was bool) { l.off = was }(l.off)
	l.off = !s.Enabled
	if f.When = (arguments{l, change.attrs}).rule("when", rule.Fallback, seen); change.attrs["when"] == nil {
		l.fault(change.block.DefRange, "Missing argument", `A fallback says for which items it stands in: when = "failed".`)
	}
	merged := stageBody{block: change.block, attrs: maps.Clone(stage.attrs)}
	merged.block = &hcl.Block{Type: stage.block.Type, Labels: stage.block.Labels, DefRange: change.block.DefRange}
	maps.Copy(merged.attrs, change.attrs)
	delete(merged.attrs, "when")
	if attr := change.attrs["whole"]; attr != nil {
		l.fault(attr.NameRange, "Misplaced argument", "A fallback searches. Write whole in the retrieve block itself.")
	}
	delete(merged.attrs, "whole")
	for _, c := range stage.configs {
		if len(c.Labels) > 0 || change.attrs["use"] == nil {
			merged.configs = append(merged.configs, c)
		}
	}
	merged.configs = append(merged.configs, change.configs...)
	if merged.prices = change.prices; len(merged.prices) == 0 {
		merged.prices = stage.prices
	}
	f.Stage = l.makeStage(merged, at)
	l.checkCalls(f.Stage, change) // what it did not write itself suited the stage
	if r := f.Stage.Retrieve; r != nil && r.Ranking.Mode != s.Retrieve.Ranking.Mode && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	if s.Block == "rerank" && change.attrs["use"] != nil && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	l.checkKeep(f.Stage, merged.attrs)
	return f
}

func (l *loader) makeStage(b stageBody, at place) *Stage {
	a := arguments{l, b.attrs}
	s := &Stage{Block: b.block.Type, Name: b.block.Type, Range: b.block.DefRange, UseRange: b.block.DefRange}
	if len(b.block.Labels) > 0 {
		s.Name = b.block.Labels[0]
	}
	s.Enabled = a.bool("enabled", true)
	defer func(was bool) { l.off = was }(l.off)
	l.off = l.off || !s.Enabled
	s.Batch = a.int("batch", 0, 1)
	s.Workers = a.int("workers", 0, 1)
	s.Retries = a.int("retries", retries, 0)
	s.Timeout = a.duration("timeout")
	s.OnError = OnError(a.choice("on_error", string(FailItem), string(FailItem), string(SkipItem)))
	s.When = a.rule("when", rule.When, at.scope)
	inside := at.scope // what the rules see that run after the stage
	switch s.Block {
	case "retrieve":
		inside.Candidates = true
		s.Retrieve = l.readRetrieve(b, a, at.scope)
		s.Keep = a.rule("keep", rule.Keep, inside)
		return s
	case "rerank":
		s.TopK = a.int("top_k", 20, 1)
		s.Keep = a.rule("keep", rule.Keep, inside)
	case "elect":
		inside.Voters = true
		s.Flag = a.rule("flag", rule.Flag, inside)
	case "sample":
		s.N = a.int("n", 1, 1)
		s.Tries = a.int("tries", 1, 1)
	case "enrich":
		s.Embedded, s.Lexical = a.bool("embed", true), a.bool("lexical", true)
	case "store":
		at.knowledge.Analyzer = a.text("analyzer", "standard")
	}
	s.Accept = a.rule("accept", rule.Accept, inside)
	s.Limit = l.readLimitOf(b)
	s.Price = l.readPrice(b)
	s.Kind = sdk.Kind(s.Block)
	l.readUse(s, b, a)
	return s
}

// readUse finds the plugin stage that a block uses, and reads its config.
func (l *loader) readUse(s *Stage, b stageBody, a arguments) {
	attr, ok := b.attrs["use"]
	if !ok {
		l.fault(b.block.DefRange, "Missing argument", "Say which stage does the work: use = \"...\". There are %s.", l.uses(s.Kind))
		return
	}
	s.UseRange = attr.Expr.Range()
	use, at, ok := a.value("use", cty.String)
	if !ok {
		return
	}
	s.Use = use.AsString()
	if s.Info, ok = l.Catalog.Stage(s.Kind, s.Use); !ok {
		l.unknownStage(s, at)
		return
	}
	info := s.Info
	info.Name = s.Use // a labelled config is for the name that the file uses
	s.Config = l.readConfig(b.configs, info, at)
	if info.Network && b.attrs["retries"] == nil {
		s.Retries = networkRetries
	}
}

func (l *loader) unknownStage(s *Stage, at hcl.Range) {
	if e, ok := l.Catalog.(Explainer); ok {
		if why := e.Explain(s.Use); why != nil {
			l.fault(at, "Unusable plugin", "The %s stage %q cannot be used: %v.", s.Kind, s.Use, why)
			return
		}
	}
	l.fault(at, "Unknown stage", "No plugin offers the %s stage %q.%s", s.Kind, s.Use, orList(s.Use, l.Catalog.Uses(s.Kind)))
}
