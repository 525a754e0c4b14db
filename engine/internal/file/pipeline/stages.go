package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
	"github.com/racflow/racflow/sdk"
)

// readFallback reads a fallback as a copy of its stage, with the arguments that the fallback
// changes. The fallback inherits the stage's configs, except an unlabelled config if it uses another
// plugin. It inherits keep, unless it searches in another mode or reranks by another plugin, since
// the scores then differ.
func (l *loader) readFallback(s *Stage, stage, change stageBody, at place) Fallback {
	f := Fallback{Name: change.block.Labels[0]}
	seen := at.scope
	seen.Candidates = seen.Candidates || stage.block.Type == "retrieve"
	defer func(was bool) { l.off = was }(l.off)
	l.off = !s.Enabled
	if f.When = (arguments{l, change.attrs}).rule("when", rule.Fallback, seen); change.attrs["when"] == nil {
		l.errorAt(change.block.DefRange, "Missing argument", `A fallback says for which items it stands in: when = "failed".`)
	}
	merged := stageBody{block: change.block, attrs: maps.Clone(stage.attrs)}
	merged.block = &hcl.Block{Type: stage.block.Type, Labels: stage.block.Labels, DefRange: change.block.DefRange}
	maps.Copy(merged.attrs, change.attrs)
	delete(merged.attrs, "when")
	if attr := change.attrs["whole"]; attr != nil {
		l.errorAt(attr.NameRange, "Misplaced argument", "A fallback searches. Write whole in the retrieve block itself.")
	}
	delete(merged.attrs, "whole")
	delete(merged.attrs, "calibrate")
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
	l.checkCalls(f.Stage, change) // inherited arguments were checked with the stage
	if r := f.Stage.Retrieve; r != nil && r.Ranking.Mode != s.Retrieve.Ranking.Mode && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	if s.Block == "rerank" && change.attrs["use"] != nil && change.attrs["keep"] == nil {
		f.Stage.Keep = nil
	}
	l.checkKeep(f.Stage, merged.attrs)
	return f
}

// readRetrieve reads how a retrieve block searches.
func (l *loader) readRetrieve(b stageBody, a arguments, scope rule.Scope) *Retrieve {
	r := &Retrieve{From: l.readFrom(b)}
	r.Ranking.TopK = a.int("top_k", 60, 1)
	r.Ranking.NumCandidates = a.int("num_candidates", max(4*r.Ranking.TopK, 100), 1)
	if r.Ranking.NumCandidates < r.Ranking.TopK {
		l.errorAt(b.attrs["num_candidates"].Expr.Range(), "Value out of range", "num_candidates is how many entries each leg finds; it is at least top_k, which is %d.", r.Ranking.TopK)
	}
	r.Ranking.Mode = sdk.Mode(a.choice("mode", string(sdk.ModeHybrid), string(sdk.ModeHybrid), string(sdk.ModeDense), string(sdk.ModeLexical)))
	r.Ranking.Method = a.choice("fusion", "weighted", "weighted", "rrf")
	r.Ranking.DenseWeight = a.share("dense_weight", 0.7)
	r.Ranking.K = a.int("rrf_k", 60, 1)
	r.Filter = l.readFilter(r.From, a, scope)
	if r.Whole = a.rule("whole", rule.Whole, scope); r.Whole != nil && r.Filter != nil {
		l.errorAt(a.attrs["whole"].NameRange, "Contradicting arguments", "Where whole holds, all entries are given and nothing is searched, so filter would not count. Leave one of them out, or narrow down what is given by keep.")
	}
	return r
}

// readFilter reads the filter, which selects the entries to search. It checks that the store
// supports filters.
func (l *loader) readFilter(from *Knowledge, a arguments, scope rule.Scope) *rule.Filter {
	scope.Texts = len(from.Sources) > 0 && !slices.ContainsFunc(from.Sources, func(s Source) bool { return !s.Reviewed && !s.Form.Format.OfTexts() })
	f := a.filter("filter", scope)
	if store := from.Store; f != nil && store.Info.Name != "" && !store.Info.Filters {
		l.errorAt(a.attrs["filter"].Expr.Range(), "Unsupported filter",
			"The store %q of knowledge %q does not offer filters. Use one that does, or narrow down what has been found by keep.", store.Use, from.Name)
	}
	return f
}

// readFrom reads from = knowledge.NAME, which is a reference, not a value.
func (l *loader) readFrom(b stageBody) *Knowledge {
	none := &Knowledge{Embed: &Stage{}, Store: &Stage{}}
	attr, ok := b.attrs["from"]
	if !ok {
		if len(l.file.Knowledge) == 1 {
			return l.file.Knowledge[0]
		}
		l.errorAt(b.block.DefRange, "Missing argument", "Say what is searched: from = knowledge.NAME.%s", l.known())
		return none
	}
	name, ok := reference(attr.Expr, "knowledge")
	if !ok {
		l.errorAt(attr.Expr.Range(), "Not a knowledge", "from names a knowledge block: knowledge.NAME.%s", l.known())
		return none
	}
	var names []string
	for _, k := range l.file.Knowledge {
		if k.Name == name {
			return k
		}
		names = append(names, k.Name)
	}
	l.errorAt(attr.Expr.Range(), "Unknown knowledge", "There is no knowledge block %q.%s", name, OrList(name, names))
	return none
}

// reference reads BLOCK.NAME, which names a block of that type and is not a value.
func reference(e hcl.Expression, block string) (name string, ok bool) {
	t, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() || t.RootName() != block || len(t) != 2 {
		return "", false
	}
	attr, ok := t[1].(hcl.TraverseAttr)
	return attr.Name, ok
}

func (l *loader) known() string {
	var names []string
	for _, k := range l.file.Knowledge {
		names = append(names, "knowledge."+k.Name)
	}
	if len(names) == 0 {
		return " There is no knowledge block yet."
	}
	return fmt.Sprintf(" There is %s.", strings.Join(names, ", "))
}

// checkKeep warns about a keep that reads only the score of the leg that is not searched, or any
// score if whole may hold.
func (l *loader) checkKeep(s *Stage, attrs hcl.Attributes) {
	if s.Retrieve == nil || s.Keep == nil {
		return
	}
	if s.Retrieve.Whole != nil && (s.Keep.Reads("dense") || s.Keep.Reads("lexical") || s.Keep.Reads("score")) {
		l.warn(attrs["keep"].Expr.Range(), "Score that is never there",
			"Where whole holds, nothing is searched: dense and lexical are not there, comparing them is false, and score is 0. Such a keep may drop everything then.")
	}
	mode := s.Retrieve.Ranking.Mode
	other := map[sdk.Mode]string{sdk.ModeLexical: "dense", sdk.ModeDense: "lexical"}[mode]
	if other == "" || !s.Keep.Reads(other) || s.Keep.Reads(string(mode)) || s.Keep.Reads("score") {
		return
	}
	l.warn(attrs["keep"].Expr.Range(), "Score that is never there",
		"In mode %q no candidate has a %s score, and comparing it is false. Ask for %s or score.", mode, other, mode)
}

// checkWhole warns about a voter on candidates if whole may hold: the voter then abstains.
func (l *loader) checkWhole(voter, retrieve *Stage) {
	columns := sdk.Of(sdk.ColumnCandidates, sdk.ColumnPrototypes, sdk.ColumnVector)
	if reads := voter.reads(); retrieve == nil || retrieve.Retrieve.Whole == nil || reads&columns == 0 || reads.Has(sdk.ColumnPrompts) {
		return
	}
	l.warn(voter.UseRange, "Voter without candidates",
		"Where whole of retrieve %q holds, nothing is searched, so that %s has nothing to vote on, and abstains.", retrieve.Name, voter.Use)
}

// rule compiles an argument's rule; nil: there is none, or it is wrong.
func (a arguments) rule(name string, kind rule.Kind, scope rule.Scope) *rule.Rule {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	r, diags := rule.Compile(kind, scope, src)
	a.add(diags)
	return r
}

// filter compiles an argument's filter; nil: there is none, or it is wrong.
func (a arguments) filter(name string, scope rule.Scope) *rule.Filter {
	src, ok := a.source(name)
	if !ok {
		return nil
	}
	f, diags := rule.CompileFilter(scope, src)
	a.add(diags)
	return f
}

// A rule spends this much of the evaluation's budget for each byte of its text, and of the
// expression that gives the text.
const (
	compiling = 128
	reading   = 32
)

// source reads the text of a rule.
func (a arguments) source(name string) (rule.Source, bool) {
	attr, ok := a.attrs[name]
	if !ok || !a.givesRule(name, attr.Expr) {
		return rule.Source{}, false
	}
	src, diags := rule.NewSource(a.bytes(attr.Expr), attr.Expr, a.contextOf(attr.Expr))
	a.add(diags)
	a.Spend(attr.Expr, compiling*min(len(src.Text), rule.MaxSource)+reading*len(attr.Expr.Range().SliceBytes(a.bytes(attr.Expr))))
	if strings.Contains(src.Text, "var") { // the values of variables become part of the rule
		for _, v := range a.vars {
			a.SpendValue(attr.Expr, v, 1)
		}
	}
	return src, !diags.HasErrors()
}

// bytes returns the text that contains an expression.
func (l *loader) bytes(e hcl.Expression) []byte {
	if f := l.file.Sources[e.Range().Filename]; f != nil {
		return f.Bytes
	}
	return l.src
}

// givesRule reports whether there is a rule to read. An expression may be null (when = var.x ? "..."
// : null), or wrong.
func (a arguments) givesRule(name string, e hcl.Expression) bool {
	switch e.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateWrapExpr:
		return true // NewSource checks the expression
	}
	for _, t := range e.Variables() {
		if root := t.RootName(); root != "var" && root != "local" {
			a.errorAt(t.SourceRange(), "Rule without quotes", "A rule is a text: write it in quotes, as in %s = \"%s ...\".", name, root)
			return false
		}
	}
	v, _ := a.eval(e).Unmark()
	return v.IsKnown() && !v.IsNull()
}

// Default numbers of repetitions of a call after a transient failure. A service that asks callers to
// wait may ask several times.
const (
	retries        = 2
	networkRetries = 5
)

// place is where a stage stands, which determines what its rules may read.
type place struct {
	knowledge *Knowledge // the knowledge block that contains the stage
	scope     rule.Scope // the blocks above the stage
}

// stageBody is the content of a stage's block.
type stageBody struct {
	block     *hcl.Block
	attrs     hcl.Attributes
	configs   []*hclsyntax.Block
	prices    hcl.Blocks
	fallbacks hcl.Blocks
}

// body reads a block by its description. It takes config blocks out first, since they have one label
// or none, which no HCL schema can express. It accepts the refused arguments: the caller refuses
// them with better advice than HCL gives.
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
		described := grammar.Described("knowledge", b.Type)
		body := l.body(b, described)
		l.override(&body, at.knowledge.Name, described.Names())
		s := l.makeStage(body, at)
		l.checkCalls(s, body)
		return s
	}
	described := grammar.Described("pipeline", b.Type)
	body := l.body(b, described)
	l.override(&body, b.Labels[0], described.Names())
	s := l.makeStage(body, at)
	l.checkKeep(s, body.attrs)
	l.checkCalls(s, body)
	if s.Calibrate != nil && *s.Calibrate > 0 && s.Info.Name != "" && !s.Info.FitReads.Has(sdk.ColumnSamples) {
		l.warn(body.attrs["calibrate"].Range, "Calibration without effect",
			"The elect stage %q learns nothing from votes, so calibrate has nobody asked. Use one that does, such as learned, or leave calibrate out.", s.Use)
	}
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
	m := l.takeModel(&b)
	a.attrs = b.attrs
	s.Enabled = a.enabled() && (m == nil || m.exists)
	defer func(was bool) { l.off = was }(l.off)
	l.off = l.off || !s.Enabled
	s.Batch = a.int("batch", 0, 1)
	s.Workers = a.int("workers", 0, 1)
	s.Retries = a.int("retries", retries, 0)
	s.Timeout = a.duration("timeout")
	s.Memory = a.size("memory")
	s.OnError = OnError(a.choice("on_error", string(FailItem), string(FailItem), string(SkipItem)))
	s.When = a.rule("when", rule.When, at.scope)
	inside := at.scope // what rules see that run after the stage
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
		if n := a.int("calibrate", -1, 0); n >= 0 {
			s.Calibrate = &n
		}
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
	l.readUse(s, b, a, m)
	l.findPrice(s)
	return s
}

// readUse finds the plugin stage that a block uses, and reads its config. m is the model that the
// block names; nil: it names none.
func (l *loader) readUse(s *Stage, b stageBody, a arguments, m *model) {
	at := b.block.DefRange
	if attr, ok := b.attrs["use"]; ok {
		s.UseRange = attr.Expr.Range()
		use, where, ok := a.value("use", cty.String)
		if !ok {
			return
		}
		s.Use, at = use.AsString(), where
	} else if s.Use = l.useOf(b, m); s.Use == "" {
		l.errorAt(at, "Missing argument", "Say which stage does the work: use = \"...\". There are %s.", l.uses(s.Kind))
		return
	}
	var ok bool
	if s.Info, ok = l.Catalog.Stage(s.Kind, s.Use); !ok {
		l.unknownStage(s, at)
		return
	}
	s.Use = NameOf(s.Use, s.Info)
	if c, ok := l.Catalog.(programs); ok {
		s.Program = c.Program(s.Use)
	}
	info := s.Info
	info.Name = s.Use // a config's label is the name that the file uses
	if m != nil {
		b.configs = append([]*hclsyntax.Block{m.configFor(info)}, b.configs...)
	}
	if server := l.server(s, b.configs); server != nil {
		b.configs = append([]*hclsyntax.Block{server}, b.configs...)
	}
	s.Config = l.readConfig(b.configs, info, at)
	if s.Info.PendsIf != "" {
		if s.Info.Pends = s.Config.is(s.Info.PendsIf, s.Info.Arguments); s.Info.Pends {
			s.Info.Batch = 0 // a batch has as many rows as there are
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
