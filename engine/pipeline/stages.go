package pipeline

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/rule"
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
	l.fault(at, "Unknown stage", "No plugin offers the %s stage %q.%s", s.Kind, s.Use, OrList(s.Use, l.Catalog.Uses(s.Kind)))
}
