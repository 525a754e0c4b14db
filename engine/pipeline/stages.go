package pipeline

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/grammar"
	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
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

// stageBody is what is written in a stage's block.
type stageBody struct {
	block     *hcl.Block
	attrs     hcl.Attributes
	configs   []*hclsyntax.Block
	prices    hcl.Blocks
	fallbacks hcl.Blocks
}

// body reads a block as it is described. Config blocks have no label or one, which no
// HCL schema can say, so they are taken out first. The
// caller gives better advice on arguments that it refuses than HCL would.
func (l *loader) body(b *hcl.Block, described grammar.Block, refused ...string) stageBody {
	body := *b.Body.(*hclsyntax.Body)
	s := stageBody{block: b}
	if described.Kind != "" {
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
	schema := described.Schema()
	for _, n := range refused {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: n})
	}
	for old, now := range grammar.Renamed {
		if slices.Contains(described.Names(), now.Name) {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: old})
		}
	}
	content, diags := body.Content(schema)
	l.add(diags)
	for old, now := range grammar.Renamed {
		if attr, ok := content.Attributes[old]; ok {
			l.errorAt(attr.NameRange, "Renamed argument", "%s", now.Advice)
			delete(content.Attributes, old)
		}
	}
	s.attrs, s.fallbacks, s.prices = content.Attributes, content.Blocks.OfType("fallback"), content.Blocks.OfType("price")
	return s
}

func (l *loader) readStage(b *hcl.Block, at place) *Stage {
	inPipeline := len(b.Labels) > 0
	if !inPipeline {
		body := l.body(b, grammar.Described("knowledge", b.Type))
		s := l.makeStage(body, at)
		l.checkCalls(s, body)
		return s
	}
	described := grammar.Described("pipeline", b.Type)
	body := l.body(b, described)
	l.override(&body, described.Names())
	s := l.makeStage(body, at)
	l.checkKeep(s, body.attrs)
	l.checkCalls(s, body)
	fallback, _ := described.Inner("fallback")
	var refused []string
	if b.Type == "retrieve" {
		refused = []string{"whole"}
	}
	for _, f := range l.distinct(body.fallbacks) {
		s.Fallbacks = append(s.Fallbacks, l.readFallback(s, body, l.body(f, fallback, refused...), at))
	}
	return s
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
	s.Memory = a.size("memory")
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
		s.Resamples = a.int("resamples", 0, 0)
	case "enrich":
		s.Embedded, s.Lexical = a.bool("embed", true), a.bool("lexical", true)
		s.Delimiter = a.text("delimiter", "")
	case "store":
		at.knowledge.Analyzer = a.choice("analyzer", "standard", grammar.Analyzers()...)
	}
	s.Accept = a.rule("accept", rule.Accept, inside)
	s.Limit = l.readLimitOf(b)
	s.Price = l.readPrice(b)
	s.Kind = sdk.Kind(s.Block)
	l.readUse(s, b, a)
	l.findPrice(s)
	return s
}

// readUse finds the plugin stage that a block uses, and reads its config.
func (l *loader) readUse(s *Stage, b stageBody, a arguments) {
	attr, ok := b.attrs["use"]
	if !ok {
		l.errorAt(b.block.DefRange, "Missing argument", "Say which stage does the work: use = \"...\". There are %s.", l.uses(s.Kind))
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
	if c, ok := l.Catalog.(Programs); ok {
		s.Program = c.Program(s.Use)
	}
	info := s.Info
	info.Name = s.Use // a labelled config is for the name that the file uses
	s.Config = l.readConfig(b.configs, info, at)
	if s.Info.PendsIf != "" {
		if s.Info.Pends = s.Config.is(s.Info.PendsIf, s.Info.Arguments); s.Info.Pends {
			s.Info.Batch = 0 // as many rows as there are
		}
	}
	if info.Network && b.attrs["retries"] == nil {
		s.Retries = networkRetries
	}
}

func (l *loader) unknownStage(s *Stage, at hcl.Range) {
	if e, ok := l.Catalog.(Explainer); ok {
		if why := e.Explain(s.Use); why != nil {
			l.errorAt(at, "Unusable plugin", "The %s stage %q cannot be used: %v.", s.Kind, s.Use, why)
			return
		}
	}
	l.errorAt(at, "Unknown stage", "No plugin offers the %s stage %q.%s", s.Kind, s.Use, OrList(s.Use, l.Catalog.Uses(s.Kind)))
}
