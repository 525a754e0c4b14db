package pipeline

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/sdk"
)

// formArguments lists the arguments that describe how the rows of a file are written.
var formArguments = []string{"format", "delimiter", "quote", "encoding", "header", "header_row", "sheet", "part", "where"}

// form reads the arguments that formArguments lists.
func (a arguments) form(path string) source.Form {
	f := source.Form{Format: source.FormatOf(path)}
	if format := a.choice("format", "", grammar.Formats()...); format != "" {
		f.Format = source.Format(format)
	}
	f.Delimiter, f.Quote = a.character("delimiter"), a.character("quote", source.NoQuote)
	f.Encoding, f.Sheet = a.encoding(), a.text("sheet", "")
	if v, _, ok := a.value("header", cty.Bool); ok && v.False() {
		header := false
		f.Header = &header
	}
	f.HeaderRow = a.int("header_row", 0, 1)
	if f.HeaderRow > 0 && f.Header != nil {
		a.errorAt(a.attrs["header_row"].NameRange, "Contradiction", "header_row names the row with the names of the columns, and header = false says that there is none: write one of them.")
	}
	f.Part, f.Where = a.part(), a.where()
	return f
}

// where reads the condition on rows: a column and its required value.
func (a arguments) where() (where [2]string) {
	v, at, ok := a.value("where", cty.Map(cty.String))
	if !ok {
		return where
	}
	for name, value := range v.AsValueMap() {
		if v.LengthInt() == 1 && name != "" && !value.IsNull() {
			return [2]string{name, strings.TrimSpace(value.AsString())}
		}
	}
	a.errorAt(at, "Value out of range", "where has one column and the value that it has in the rows that count, such as { split = \"train\" }.")
	return where
}

// character reads a text of one character, or one of the words with a special meaning.
func (a arguments) character(name string, words ...string) string {
	v, at, ok := a.value(name, cty.String)
	if !ok || slices.Contains(words, v.AsString()) || v.AsString() == "" {
		return a.text(name, "")
	}
	if utf8.RuneCountInString(v.AsString()) != 1 || strings.ContainsAny(v.AsString(), "\r\n") {
		a.errorAt(at, "Value out of range", "%s is one character, such as \";\", \"|\" or \"\\t\", not %q.", name, v.AsString())
		return ""
	}
	return v.AsString()
}

// encoding reads the name of an encoding.
func (a arguments) encoding() string {
	v, at, ok := a.value("encoding", cty.String)
	if !ok || v.AsString() == "" {
		return ""
	}
	if _, err := rows.FindEncoding(v.AsString()); err != nil {
		a.errorAt(at, "Unknown encoding", "%v.", err)
		return ""
	}
	return v.AsString()
}

// part reads which share of the rows is used.
func (a arguments) part() (part [2]float64) {
	v, at, ok := a.value("part", cty.List(cty.Number))
	if !ok {
		return part
	}
	given := v.AsValueSlice()
	for i, n := range given {
		if i < len(part) && !n.IsNull() {
			part[i], _ = n.AsBigFloat().Float64()
		}
	}
	if len(given) != 2 || part[0] < 0 || part[0] >= part[1] || part[1] > 1 {
		a.errorAt(at, "Value out of range", "part says from where to where the rows count, such as [0, 0.9] for nine of ten and [0.9, 1] for the others.")
		return [2]float64{}
	}
	return part
}

// mapColumns sets the columns that the command line names. Only a knowledge has a context column,
// only an input a column of gold passages.
func (l *loader) mapColumns(s *Source, input bool) {
	columns, given := map[string]*string{"id": &s.ID, "text": &s.Text, "label": &s.Label}, l.Columns
	if input {
		columns["gold"], s.Flag = &s.Gold, "--column"
	} else {
		columns["context"], s.Flag, given = &s.Context, "--knowledge-column", l.KnowledgeColumns
	}
	for means, to := range columns {
		if column := given[means]; column != "" {
			*to = column
		}
	}
}

// Processes yields the enabled stages of a pipeline that run in a separate process, with fallbacks and
// the stages of its knowledge. Their names are as in messages: sample.mine; embed.NAME for the
// knowledge NAME. A fallback has the name of its stage.
func (p *Pipeline) Processes() iter.Seq2[string, *Stage] {
	return func(yield func(string, *Stage) bool) {
		for _, k := range p.Knowledge() {
			for _, s := range k.Stages() {
				name := k.Name
				if s.Block == "enrich" {
					name = s.Name
				}
				if !yield(s.Block+"."+name, s) {
					return
				}
			}
		}
		for _, s := range p.Stages {
			if !s.Enabled || s.Kind == "" { // the engine itself searches
				continue
			}
			if !yield(s.Block+"."+s.Name, s) {
				return
			}
			for _, f := range s.Fallbacks {
				if !yield(s.Block+"."+s.Name, f.Stage) {
					return
				}
			}
		}
	}
}

// Programs returns the third-party programs that the pipeline's enabled stages and their knowledge
// start, each once, in the order of the data flow.
func (p *Pipeline) Programs() []*program.Program {
	var all []*program.Program
	add := func(s *Stage) {
		if s.Program != nil && !slices.ContainsFunc(all, func(have *program.Program) bool { return have.Name == s.Program.Name }) {
			all = append(all, s.Program)
		}
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Stages() {
			add(s)
		}
	}
	for _, s := range p.Stages {
		if s.Enabled {
			add(s)
			for _, f := range s.Fallbacks {
				add(f.Stage)
			}
		}
	}
	return all
}

// Concurrency returns how many calls at a time the stage's limit allows.
func (s *Stage) Concurrency() int {
	if s.Limit != nil {
		return s.Limit.Concurrency
	}
	return grammar.DefaultConcurrency
}

// maxTokens is the largest budget of tokens: a float64 represents it exactly.
const maxTokens = 1 << 50

// readLimit reads a limit block.
func (l *loader) readLimit(b *hcl.Block) *Limit {
	content, diags := b.Body.Content(grammar.Described("limit").Schema())
	l.add(diags)
	if len(content.Attributes) == 0 && !diags.HasErrors() {
		l.errorAt(b.DefRange, "Empty limit", "A limit bounds something: concurrency, requests_per_minute or tokens_per_minute.")
	}
	l.overrideBlock("limit", b.Labels[0], content.Attributes)
	a := arguments{l, content.Attributes}
	return &Limit{
		Name:        b.Labels[0],
		Concurrency: a.int("concurrency", grammar.DefaultConcurrency, 1),
		Requests:    a.int("requests_per_minute", 0, 1),
		Tokens:      a.int("tokens_per_minute", 0, 1),
		Range:       b.DefRange,
	}
}

// readLimitOf reads the limit that a stage names.
func (l *loader) readLimitOf(b stageBody) *Limit {
	attr, ok := b.attrs["limit"]
	if !ok {
		return nil
	}
	var names []string
	for _, limit := range l.file.Limits {
		names = append(names, limit.Name)
	}
	name, ok := reference(attr.Expr, "limit")
	if !ok {
		l.errorAt(attr.Expr.Range(), "Not a limit", "limit names a limit block at the top of the file: limit.NAME.%s", OrList("", names))
		return nil
	}
	for _, limit := range l.file.Limits {
		if limit.Name == name {
			return limit
		}
	}
	l.errorAt(attr.Expr.Range(), "Unknown limit", "There is no limit block %q.%s", name, OrList(name, names))
	return nil
}

// readJournal reads the journal block; without a block, it returns the defaults.
func (l *loader) readJournal(blocks hcl.Blocks) Journal {
	a := l.readOnly(blocks, "A pipeline", "pipeline", "journal")
	return Journal{
		Sync: a.choice("sync", "none", "none", "batch", "item"), Keep: a.choice("keep", "notable", "notable", "all"),
		Runs: a.int("runs", 20, 1), Age: a.duration("age"), Bytes: a.wholeNumber("bytes", 0, 1, math.MaxInt64),
	}
}

// readCache reads the limits of the caches; without a block, it returns the defaults.
func (l *loader) readCache(blocks hcl.Blocks) Cache {
	a := l.readOnly(blocks, "A file", "cache")
	return Cache{
		Vectors: a.wholeNumber("vector_bytes", grammar.DefaultVectorBytes, 0, math.MaxInt64),
		Answers: a.wholeNumber("answer_bytes", 0, 1, math.MaxInt64), Age: a.duration("age"),
	}
}

// readOnly reads a block that may occur at most once in its parent.
func (l *loader) readOnly(blocks hcl.Blocks, whose string, path ...string) arguments {
	a := arguments{l, nil}
	for i, b := range blocks {
		if i > 0 {
			l.errorAt(b.DefRange, "Duplicate block", "%s has one %s block; there is one on line %d already.", whose, b.Type, blocks[0].DefRange.Start.Line)
			break
		}
		content, diags := b.Body.Content(grammar.Described(path...).Schema())
		l.add(diags)
		a.attrs = content.Attributes
	}
	return a
}

// readPrice reads the price of a stage's calls; nil: the file sets none, or its price is null, as with
// a variable without a value.
func (l *loader) readPrice(b stageBody) *Price {
	if len(b.prices) == 0 {
		return nil
	}
	block := b.prices[0]
	for _, extra := range b.prices[1:] {
		l.errorAt(extra.DefRange, "Duplicate block", "A stage has one price block; there is one on line %d already.", block.DefRange.Start.Line)
	}
	content, diags := block.Body.Content(grammar.Described("pipeline", "sample", "price").Schema())
	l.add(diags)
	needed := []string{"input"}
	if b.block.Type == "sample" || b.block.Type == "enrich" {
		needed = append(needed, "output")
	}
	for _, name := range needed {
		if _, ok := content.Attributes[name]; !ok && !diags.HasErrors() {
			l.errorAt(block.DefRange, "Missing argument", "A price says what a million tokens cost: %s is missing. What is free costs 0.", name)
		}
	}
	a := arguments{l, content.Attributes}
	unsaid := slices.DeleteFunc(slices.Clone(needed), func(name string) bool { return !a.null(name) })
	switch len(unsaid) {
	case 0:
	case len(needed):
		return nil
	default:
		l.errorAt(content.Attributes[unsaid[0]].Expr.Range(), "Half a price", "%s is null, while the price says what the other direction costs. What is free costs 0.", unsaid[0])
	}
	var ok bool
	var p Price
	p.Input, _ = a.price("input")
	p.Output, _ = a.price("output")
	if p.Cached, ok = a.price("cached"); !ok {
		p.Cached = p.Input
	}
	if p.Batch, ok = a.price("batch"); ok && p.Batch == 0 {
		a.errorAt(content.Attributes["batch"].Expr.Range(), "Value out of range", "batch is a share of the prices, as 0.5. Leave it out where batches cost half.")
	}
	return &p
}

// findPrice looks up the price of a stage's model at its service, if the file does not set it.
func (l *loader) findPrice(s *Stage) {
	if s.Price != nil || l.Prices == nil || !s.Info.Network {
		return
	}
	var named [2]string
	for i, name := range []string{"base_url", "model"} {
		a, _ := argument(s.Info, name)
		if json.Unmarshal(a.Default, &named[i]) != nil {
			named[i] = "" // no default, or a default of another type
		}
	}
	given := struct {
		BaseURL *string `json:"base_url"`
		Model   *string `json:"model"`
	}{&named[0], &named[1]}
	if json.Unmarshal(s.Config.Public, &given) != nil || named[1] == "" {
		return
	}
	if p, from, ok := l.Prices.Find(named[0], named[1]); ok {
		s.Price, s.PriceFrom = &p, from
	}
}

// budget reads the limits on the cost of a run.
func (a arguments) budget() Budget {
	b := Budget{Tokens: a.wholeNumber("max_tokens", 0, 1, maxTokens)}
	cost, ok := a.price("max_cost")
	if ok && cost == 0 {
		a.errorAt(a.attrs["max_cost"].Expr.Range(), "Value out of range", "max_cost is more than 0. Leave it out to set no bound.")
	}
	b.Cost = cost
	return b
}

// price reads an amount of money.
func (a arguments) price(name string) (amount float64, ok bool) {
	v, at, ok := a.value(name, cty.Number)
	if !ok {
		return 0, false
	}
	amount, _ = v.AsBigFloat().Float64()
	if amount < 0 || math.IsInf(amount, 0) {
		a.errorAt(at, "Value out of range", "%s is an amount of money: a number of at least 0.", name)
		return 0, false
	}
	return amount, true
}

// checkCalls warns about a limit or price for a stage that calls no service. Other checks report an
// unknown plugin.
func (l *loader) checkCalls(s *Stage, written stageBody) {
	if s.Info.Name == "" || s.Info.Network {
		return
	}
	const detail = "The %s stage %q calls no service over the network, so %s has no effect."
	if attr, ok := written.attrs["limit"]; ok {
		l.warn(attr.Range, "Limit without calls", detail, s.Kind, s.Use, "its limit")
	}
	for _, b := range written.prices {
		l.warn(b.DefRange, "Price without calls", detail, s.Kind, s.Use, "its price")
	}
}

// checkBudget rejects a max_cost if a stage that calls services has no price.
func (l *loader) checkBudget(p *Pipeline, attrs hcl.Attributes) {
	attr, ok := attrs["max_cost"]
	if !ok {
		return
	}
	if without := p.Unpriced(); len(without) > 0 {
		l.errorAt(attr.Range, "Budget without a price", "%s has no price, so max_cost cannot bound what it spends: %s.", without[0], PriceAdvice)
	}
}

// PriceAdvice is the advice for a missing price.
const PriceAdvice = `write price { ... } in its block: what a million tokens cost, input = 0.15 and output = 0.6 on lines of their own, 0 where they are free; where the file has a variable for that, -var 'price={ input = 0.15, output = 0.6 }'; or write a file of prices for all pipelines, as racflow plan --help says`

// Unpriced names the enabled stages that call services and have no price. A price of 0 counts as a
// price: the file declares the service to be free.
func (p *Pipeline) Unpriced() []string {
	var free []string
	check := func(s *Stage, name string) {
		if s.Enabled && s.Info.Network && s.Price == nil && !slices.Contains(free, name) {
			free = append(free, name)
		}
	}
	for _, k := range p.Knowledge() {
		for _, s := range k.Enrich {
			check(s, "enrich."+s.Name)
		}
		check(k.Embed, "embed of knowledge."+k.Name)
	}
	for i, s := range p.Stages {
		if !p.Used(i) {
			continue
		}
		check(s, s.Block+"."+s.Name)
		for _, f := range s.Fallbacks {
			if s.Enabled {
				check(f.Stage, s.Block+"."+s.Name+", fallback."+f.Name)
			}
		}
	}
	return free
}

// countPrompts sets N of each prompt stage to the highest number of samples that a voter takes of its
// prompts.
func (p *Pipeline) countPrompts() {
	for i, s := range p.Stages {
		if s.Block != "sample" || !s.Enabled {
			continue
		}
		for _, at := range p.above(i, 1, "prompt") {
			prompt := p.Stages[at]
			prompt.atLeast(s)
			for _, f := range s.Fallbacks {
				prompt.atLeast(f.Stage)
			}
		}
	}
	for _, s := range p.Stages {
		for _, f := range s.Fallbacks {
			if s.Block == "prompt" {
				f.Stage.N = s.N
			}
		}
	}
}

// atLeast makes a prompt stage write prompts for at least as many samples as a reader takes.
func (s *Stage) atLeast(reader *Stage) {
	if reader.reads().Has(sdk.ColumnPrompts) {
		s.N = max(s.N, reader.N)
	}
}

// warn adds a warning at a place in the file.
func (l *loader) warn(at hcl.Range, summary, format string, args ...any) {
	l.add(hcl.Diagnostics{{
		Severity: hcl.DiagWarning, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: &at,
	}})
}

// Cost returns the cost of a voter's samples at its price; 0: it has no price.
func (p *Pipeline) Cost(voter string, u sdk.Usage) float64 {
	for _, s := range p.Stages {
		if s.Block == "sample" && s.Name == voter && s.Price != nil {
			return s.CallPrice().Of(u)
		}
	}
	return 0
}
