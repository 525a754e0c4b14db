package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/sdk"
)

// model is a model block. A stage that names it inherits the model's arguments, except those that the stage's own block
// sets.
type model struct {
	name   string
	exists bool   // its name is not empty, or unknown
	use    string // the plugin stage, if the naming block does not set it
	attrs  hcl.Attributes
	config []*hclsyntax.Attribute // for the config blocks of the stages that name the model
	price  hcl.Blocks
}

// providers are the services that need no address. Each names the stage that calls the service, and the environment
// variables with its key and with another address. It also has the service's own address, and the form of requests if
// they are not chats.
var providers = map[string]struct{ use, key, address, url, api string }{
	"openai":    {use: "openai", key: "OPENAI_API_KEY", address: "OPENAI_BASE_URL", url: "https://api.openai.com/v1"},
	"anthropic": {use: "openai", key: "ANTHROPIC_API_KEY", url: "https://api.anthropic.com/v1", api: "anthropic"},
	"systemone": {use: "decision", key: "TYPESAFE_API_KEY", address: "TYPESAFE_BASE_URL", url: "https://api.typesafe.ai/v1", api: "systemone"},
	"decisions": {use: "decision", key: "OPENAI_API_KEY", address: "OPENAI_BASE_URL", url: "https://api.openai.com/v1", api: "decisions"},
}

// readModel reads a model block.
func (l *loader) readModel(b *hcl.Block) *model {
	content, diags := b.Body.Content(grammar.Described("model").Schema())
	l.add(diags)
	m := &model{name: b.Labels[0], exists: true, attrs: content.Attributes}
	l.overrideBlock("model", m.name, m.attrs)
	if _, ok := m.attrs["name"]; !ok {
		l.errorAt(b.DefRange, "Missing argument", "Say which model is asked: name = \"...\", as the service knows it. Where it is empty, stages that name the block are off.")
	} else if name, _, _, ok := (arguments{l, m.attrs}).valueFrom("name", cty.String); ok {
		m.exists = name.AsString() != ""
	}
	defer func(was bool) { l.off = was }(l.off)
	l.off = !m.exists
	provider := (arguments{l, m.attrs}).text("provider", "openai")
	known, ok := providers[provider]
	if m.use = known.use; !ok {
		m.use = provider // a plugin's stage
	}
	m.give("model", "name")
	m.give("batch", "batch")
	m.give("timeout", "timeout")
	literal := func(name, text string) {
		if text != "" {
			m.add(name, &hclsyntax.LiteralValueExpr{Val: cty.StringVal(text), SrcRange: b.DefRange})
		}
	}
	literal("api", known.api)
	_, elsewhere := l.Getenv(known.address)
	switch {
	case !l.empty(m.attrs["base_url"]):
		m.give("base_url", "base_url")
	case elsewhere:
		m.add("base_url", l.fromEnvironment("env", known.address, known.url, b.DefRange))
	case known.api != "":
		literal("base_url", known.url)
	}
	switch {
	case m.attrs["api_key"] != nil:
		m.give("api_key", "api_key")
	case known.key != "":
		m.add("api_key", l.fromEnvironment("secret", known.key, "", b.DefRange))
	}
	m.price = l.priceOf(m.attrs["price"])
	return m
}

// give passes an argument of the block on to stages, under a name.
func (m *model) give(name, argument string) {
	if attr := m.attrs[argument]; attr != nil {
		m.add(name, attr.Expr.(hclsyntax.Expression))
	}
}

func (m *model) add(name string, e hclsyntax.Expression) {
	m.config = append(m.config, &hclsyntax.Attribute{Name: name, Expr: e, SrcRange: e.Range(), NameRange: e.Range(), EqualsRange: e.Range()})
}

// empty reports whether an argument is missing, null or an empty text.
func (l *loader) empty(attr *hcl.Attribute) bool {
	if attr == nil {
		return true
	}
	v, _ := l.eval(attr.Expr).UnmarkDeep()
	return v.IsNull() || v.IsWhollyKnown() && v.Type() == cty.String && v.AsString() == ""
}

// fromEnvironment returns a call of env or secret that is not in the file.
func (l *loader) fromEnvironment(function, name, otherwise string, at hcl.Range) hclsyntax.Expression {
	e, diags := bounded.ParseExpression(fmt.Appendf(nil, "%s(%q, %q)", function, name, otherwise), l.file.Path)
	l.add(diags) // the names are racflow's own
	call := e.(*hclsyntax.FunctionCallExpr)
	call.NameRange, call.OpenParenRange, call.CloseParenRange = at, at, at
	return call
}

// priceOf returns a price as a price block of a stage; nil: there is none.
func (l *loader) priceOf(attr *hcl.Attribute) hcl.Blocks {
	if attr == nil {
		return nil
	}
	v, at, ok := (arguments{l, hcl.Attributes{"price": attr}}).value("price", cty.Map(cty.Number))
	if !ok || v.IsNull() || v.LengthInt() == 0 {
		return nil
	}
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}, SrcRange: at, EndRange: at}
	for name, amount := range v.AsValueMap() {
		body.Attributes[name] = &hclsyntax.Attribute{Name: name, Expr: &hclsyntax.LiteralValueExpr{Val: amount, SrcRange: at}, SrcRange: at, NameRange: at, EqualsRange: at}
	}
	return hcl.Blocks{{Type: "price", Body: body, DefRange: at, TypeRange: at}}
}

// takeModel adds the named model's limit and price to a stage's block, and returns the model; nil: there is none.
func (l *loader) takeModel(b *stageBody) *model {
	attr, ok := b.attrs["model"]
	if !ok {
		return nil
	}
	var names []string
	for _, m := range l.models {
		names = append(names, m.name)
	}
	name, ok := reference(attr.Expr, "model")
	if !ok {
		l.errorAt(attr.Expr.Range(), "Not a model", "model names a model block at the top of the file: model.NAME.%s In a config block, model is the name of the model itself.", OrList("", names))
		return nil
	}
	m := l.modelOf(b.attrs)
	if m == nil {
		l.errorAt(attr.Expr.Range(), "Unknown model", "There is no model block %q.%s", name, OrList(name, names))
		return nil
	}
	b.attrs = maps.Clone(b.attrs)
	if limit := m.attrs["limit"]; limit != nil && b.attrs["limit"] == nil {
		b.attrs["limit"] = limit
	}
	if len(b.prices) == 0 {
		b.prices = m.price
	}
	return m
}

// modelOf returns the model that a stage names; nil: it names none, or an unknown one.
func (l *loader) modelOf(attrs hcl.Attributes) *model {
	if attr := attrs["model"]; attr != nil {
		name, _ := reference(attr.Expr, "model")
		if at := slices.IndexFunc(l.models, func(m *model) bool { return m.name == name }); at >= 0 {
			return l.models[at]
		}
	}
	return nil
}

// usual holds the default stage of each kind whose blocks may omit use.
var usual = map[sdk.Kind]string{sdk.KindEmbed: "minilm", sdk.KindStore: "local", sdk.KindElect: "learned"}

// useOf returns the stage that a block uses; empty: none. For a sample or embed block with a model m, the default comes
// from the model; otherwise from the kind.
func (l *loader) useOf(b stageBody, m *model) string {
	kind := sdk.Kind(b.block.Type)
	unsaid := usual[kind]
	if m != nil && (kind == sdk.KindSample || kind == sdk.KindEmbed) {
		unsaid = m.use
	}
	return arguments{l, b.attrs}.text("use", unsaid)
}

// server returns the address and token of the Milvus server from the environment, for a store whose configs do not set
// them. nil: the store is not Milvus, or a config sets address, token or user.
func (l *loader) server(s *Stage, configs []*hclsyntax.Block) *hclsyntax.Block {
	named := slices.ContainsFunc(configs, func(b *hclsyntax.Block) bool {
		a := b.Body.Attributes
		return (len(b.Labels) == 0 || b.Labels[0] == s.Use) && (a["address"] != nil || a["token"] != nil || a["user"] != nil)
	})
	if s.Kind != sdk.KindStore || s.Use != "milvus" || named {
		return nil
	}
	m := &model{}
	m.add("address", l.fromEnvironment("env", "MILVUS_ADDRESS", "127.0.0.1:19530", s.UseRange))
	m.add("token", l.fromEnvironment("secret", "MILVUS_TOKEN", "", s.UseRange))
	return m.configFor(s.Info)
}

// configFor returns the model's config for a stage, with only the arguments that the stage has.
func (m *model) configFor(s sdk.Stage) *hclsyntax.Block {
	body := &hclsyntax.Body{Attributes: hclsyntax.Attributes{}}
	for _, attr := range m.config {
		if _, ok := argument(s, attr.Name); ok {
			body.Attributes[attr.Name] = attr
		}
	}
	return &hclsyntax.Block{Type: "config", Body: body}
}
