package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/trust"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/attached"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// planned is a plan with methods that write it.
type planned struct{ *plan.Plan }

// entries formats a number of entries, with the number of their documents; 0 documents: entries
// from rows.
func entries(n, documents int) string {
	if documents == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d of %d documents", n, documents)
}

// Plan writes a plan of a run, for people.
func Plan(w io.Writer, what *plan.Plan) error {
	p := planned{what}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "VARIABLE\tVALUE\tFROM\n")
	for _, v := range p.File.Variables {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Name, terminal.Shorten(v.Value, valueWidth), v.From)
	}
	p.writeKnowledge(tw)
	p.writeStages(tw)
	p.writeExpects(tw)
	if p.Invalid > 0 {
		fmt.Fprintf(tw, "\n%d rows of the input cannot be used\n", p.Invalid)
	}
	p.writeServices(tw)
	p.writeModels(tw)
	p.writeWants(tw)
	if err := tw.Flush(); err != nil {
		return err
	}
	if err := p.writePlugins(w); err != nil {
		return err
	}
	if err := p.writeEnrich(w); err != nil || p.Forecast == nil {
		return err
	}
	return p.writeForecast(w)
}

// writeWants writes what the file wants to use outside its folder.
func (p planned) writeWants(w io.Writer) {
	fmt.Fprintf(w, "\nBEYOND ITS FOLDER\n")
	for _, want := range p.Wants {
		fmt.Fprintln(w, terminal.Line(want.Text))
	}
	if len(p.Wants) == 0 {
		fmt.Fprintln(w, "nothing: it sends nothing to a host, and reads no other file and no variable of the environment")
	}
}

// writeKnowledge writes what is out of date in each knowledge.
func (p planned) writeKnowledge(tw io.Writer) {
	fmt.Fprintf(tw, "\nKNOWLEDGE\tENTRIES\tTO EMBED\tTO REMOVE\tEMBEDDER\tSTORE\n")
	for _, k := range p.Knowledge {
		if t, ok := p.Texts[k.Name]; ok {
			fmt.Fprintf(tw, "%s\t%s\tat most %d (about %d tokens)\t?\t%s\t%s\n", k.Name, entries(t.Count, k.Documents), t.Count, t.Tokens, p.embedder(k), k.Store)
			continue
		}
		if k.Attached != nil {
			writeAttached(tw, k)
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\n", k.Name, entries(k.Entries, k.Documents), k.Added+k.Changed, k.Removed, p.embedder(k), k.Store)
		for _, why := range k.Anew {
			fmt.Fprintf(tw, "\t%s\n", terminal.Sanitize(why))
		}
		if k.InvalidCount > 0 {
			what := "rows"
			if k.Invalid[0].Line == 0 {
				what = "documents"
			}
			fmt.Fprintf(tw, "\t%d %s cannot be used, %s among them\n", k.InvalidCount, what, terminal.Escape(fmt.Sprint(k.Invalid[0])))
		}
	}
}

// writeStages writes how many items each stage works on.
func (p planned) writeStages(tw io.Writer) {
	fmt.Fprintf(tw, "\nSTAGE\tUSE\tPROCESS\tITEMS\n")
	for i, s := range p.Pipeline.Stages {
		use, process := withModel(s)+best(s), "its own"
		if s.Retrieve != nil {
			use, process = fmt.Sprintf("%s, %s%s", s.Retrieve.From.Name, p.mode(s.Retrieve), among(s)), "embedder and store"
		}
		if s.Info.Fits {
			process += ", learns from the knowledge first"
		}
		items := p.items()
		switch {
		case !s.Enabled:
			process, items = "-", "off: enabled is false"
		case !p.Pipeline.Used(i):
			process, items = "-", "not run: nothing reads it"
		case s.When != nil:
			items = "those where " + s.When.Text()
		case s.Info.Network && s.N > 0 && p.Items >= 0:
			items = fmt.Sprintf("%s, %d samples each: %d answers over the network", items, s.N, s.N*p.Items)
		}
		fmt.Fprintf(tw, "%s.%s\t%s\t%s\t%s\n", s.Block, s.Name, use, process, items)
	}
}

// timeouts returns the time limit of a row in each stage, by the stage's name.
func timeouts(p *pipeline.Pipeline) map[string]string {
	all := map[string]string{}
	for _, s := range p.Stages {
		if s.Enabled && s.Retrieve != nil {
			all[s.Block+"."+s.Name] = s.HangTime().String()
		}
	}
	for name, s := range p.Processes() {
		if all[name] == "" { // otherwise the name has the time limit of a fallback
			all[name] = s.HangTime().String()
		}
	}
	return all
}

// writeExpects writes the expectations that racflow test would measure. A run measures none.
func (p planned) writeExpects(w io.Writer) {
	if len(p.Pipeline.Expects) > 0 {
		fmt.Fprintf(w, "\nEXPECT\tRULE\n")
	}
	for _, e := range p.Pipeline.Expects {
		rule := "off: enabled is false"
		if e.Enabled {
			rule = terminal.Shorten(e.Rule.Text(), valueWidth)
		}
		fmt.Fprintf(w, "%s\t%s\n", e.Name, rule)
	}
}

// among describes which entries a retrieve stage searches, or when it returns all entries.
func among(s *pipeline.Stage) string {
	switch {
	case s.Retrieve == nil:
		return ""
	case s.Retrieve.Whole != nil:
		return ", or all of it where " + terminal.Shorten(s.Retrieve.Whole.Text(), valueWidth)
	case s.Retrieve.Filter == nil:
		return ""
	}
	return ", among " + terminal.Shorten(s.Retrieve.Filter.Text(), valueWidth)
}

// embedder returns the embedder of a knowledge, with the name of its model.
func (p planned) embedder(k knowledge.BuildReport) string {
	for _, block := range p.Pipeline.Knowledge() {
		if block.Name == k.Name {
			return withModel(block.Embed)
		}
	}
	return k.Embedder
}

// withModel returns a stage's use with the name of its model, if it has one. It shows only the last
// element of a model's path.
func withModel(s *pipeline.Stage) string {
	model := s.Config.Model()
	if model == "" {
		return s.Use
	}
	if filepath.IsAbs(model) {
		model = filepath.Base(model)
	}
	return fmt.Sprintf("%s (%s)", s.Use, terminal.Line(model))
}

// best describes how many candidates a rerank stage keeps.
func best(s *pipeline.Stage) string {
	if s.TopK == 0 {
		return ""
	}
	return fmt.Sprintf(", best %d", s.TopK)
}

func (p planned) items() string {
	if p.Items < 0 {
		return "all"
	}
	return fmt.Sprint(p.Items)
}

// The JSON form of a plan.
type (
	planJSON struct {
		Items     int               `json:"items"` // -1: not known before the input is read
		Invalid   int               `json:"invalid_rows,omitempty"`
		Knowledge []knowledgeJSON   `json:"knowledge,omitempty"`
		Unknown   string            `json:"unknown,omitempty"` // why there is no forecast
		Tried     int               `json:"items_tried,omitempty"`
		StandIns  map[string]string `json:"chunks_stand_in,omitempty"` // by knowledge: why its entries cannot be searched yet
		Stages    []callsJSON       `json:"stages,omitempty"`          // stages that call services
		Timeouts  map[string]string `json:"timeouts"`                  // by stage: the time limit of a row
		Plugins   []pluginJSON      `json:"plugins,omitempty"`
		Wants     []trust.Want      `json:"beyond_its_folder,omitempty"`
		Memory    int64             `json:"memory,omitempty"` // bytes: memory limit of all processes together
		Expects   []expectJSON      `json:"expects,omitempty"`
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
		Tokens  int    `json:"tokens,omitempty"` // of texts that a service would embed: a rough upper limit
		Removed int    `json:"to_remove"`

		Attached *attached.Report `json:"attached,omitempty"` // for a collection that another program makes
	}
	callsJSON struct {
		Stage    string      `json:"stage"`
		Items    int         `json:"items"`
		Answers  int         `json:"answers"`
		Cached   int         `json:"answers_from_cache"`
		Price    *priceJSON  `json:"price,omitempty"` // of a million tokens; the batch price where the stage asks in batches
		Expected *amountJSON `json:"expected,omitempty"`
		AtMost   *amountJSON `json:"at_most,omitempty"`
		Unknown  string      `json:"at_most_unknown,omitempty"` // why the maximum is unknown
	}
	amountJSON struct {
		Requests int      `json:"requests"`
		Input    uint64   `json:"input_tokens"`
		Cached   uint64   `json:"cached_tokens,omitempty"` // of Input: expected to be cached, as in earlier runs
		Output   uint64   `json:"output_tokens"`
		Cost     *float64 `json:"cost,omitempty"` // at the stage's price
		// The range of the expected output, if the model thinks; missing: it is narrow.
		Low  uint64 `json:"output_tokens_low,omitempty"`
		High uint64 `json:"output_tokens_high,omitempty"`
	}
	priceJSON struct {
		Input  float64 `json:"input"`
		Cached float64 `json:"cached"`
		Output float64 `json:"output"`
		From   string  `json:"from,omitempty"` // source of the price; empty: the file
	}
)

// PlanJSON writes the numbers of a plan as a JSON object.
func PlanJSON(w io.Writer, p *plan.Plan) error {
	shown := planJSON{Items: p.Items, Invalid: p.Invalid, Memory: p.Pipeline.Memory, Timeouts: timeouts(p.Pipeline)}
	shown.Wants = p.Wants
	for _, one := range p.Plugins {
		shown.Plugins = append(shown.Plugins, pluginOf(one))
	}
	for _, e := range p.Pipeline.Expects {
		shown.Expects = append(shown.Expects, expectJSON{e.Name, e.Rule.Text(), e.Enabled})
	}
	for _, k := range p.Knowledge {
		one := knowledgeJSON{Name: k.Name, Entries: k.Entries, ToEmbed: k.Added + k.Changed, Removed: k.Removed, Attached: k.Attached}
		if t, ok := p.Texts[k.Name]; ok {
			one.Entries, one.ToEmbed, one.Tokens = t.Count, t.Count, t.Tokens
		}
		shown.Knowledge = append(shown.Knowledge, one)
		for _, a := range k.Asks {
			f := plan.EnrichForecast(a)
			shown.Stages = append(shown.Stages, callsOf("enrich."+a.Stage.Name, a.Stage, a.Passages, f))
		}
	}
	if f := p.Forecast; f != nil {
		shown.Unknown, shown.Tried, shown.StandIns = f.Unknown, f.Tried, f.StandIns
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

// callsOf returns the forecast of a stage's calls for a number of items.
func callsOf(name string, s *pipeline.Stage, items int, f sdk.Forecast) callsJSON {
	c := callsJSON{
		Stage: name, Items: items, Answers: f.Answers, Cached: f.Cached, Unknown: f.Unknown,
		Expected: &amountJSON{Requests: f.Requests, Input: f.Likely.InputTokens, Cached: f.Likely.CachedTokens, Output: f.Likely.OutputTokens},
	}
	if ranged(f) {
		c.Expected.Low, c.Expected.High = f.Low, f.High
	}
	if f.Unknown == "" {
		c.AtMost = &amountJSON{Requests: f.MostRequests, Input: f.Most.InputTokens, Output: f.Most.OutputTokens}
	}
	if p := s.CallPrice(); p != nil {
		c.Price = &priceJSON{p.Input, p.Cached, p.Output, s.PriceFrom}
		c.Expected.Cost = new(p.Of(f.Likely))
		if c.AtMost != nil {
			c.AtMost.Cost = new(p.AtMost(f.Most))
		}
	}
	return c
}

// writeServices writes the limits and prices of stages that call services.
func (p planned) writeServices(w io.Writer) {
	var lines []string
	add := func(name string, s *pipeline.Stage) {
		if s.Enabled && s.Info.Network {
			if text := services(s); text != "" {
				lines = append(lines, name+"\t"+text)
			}
		}
	}
	for _, k := range p.Pipeline.Knowledge() {
		for _, s := range k.Enrich {
			add("enrich."+s.Name, s)
		}
		add("embed of knowledge."+k.Name, k.Embed)
	}
	for _, s := range p.Pipeline.Stages {
		add(s.Block+"."+s.Name, s)
	}
	if b := budget(p.Pipeline.Budget); b != "" {
		lines = append(lines, "a run\t"+b)
	}
	if p.Parts > 1 && len(lines) > 0 {
		lines = append(lines, fmt.Sprintf("a part\tlimits and budget are divided by %d, so that all parts together keep to them; --whole-limits leaves them as they are", p.Parts))
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "\nSERVICES\t\n%s\n", strings.Join(lines, "\n"))
	}
}

// services returns the limit, price and resamples of a stage's calls.
func services(s *pipeline.Stage) string {
	var parts []string
	if l := s.Limit; l != nil {
		text := fmt.Sprintf("limit %s: %d at a time", l.Name, l.Concurrency)
		if l.Requests > 0 {
			text += fmt.Sprintf(", %d requests a minute", l.Requests)
		}
		if l.Tokens > 0 {
			text += fmt.Sprintf(", %d tokens a minute", l.Tokens)
		}
		parts = append(parts, text)
	}
	if text := Price(s); text != "" {
		parts = append(parts, text)
	}
	if s.Resamples > 0 {
		parts = append(parts, "at most "+terminal.Plural(s.Resamples, "resample"))
	}
	return strings.Join(parts, "; ")
}

// Price describes the price of a stage's calls, and where the price was found if not in the stage's
// block; empty: it is unknown.
func Price(s *pipeline.Stage) string {
	p := s.Price
	if p == nil {
		return ""
	}
	text := "a million tokens cost " + money(p.Input) + " in"
	if p.Cached != p.Input {
		text += ", " + money(p.Cached) + " cached"
	}
	if s.Block == "sample" || s.Block == "enrich" {
		text += ", " + money(p.Output) + " out"
	}
	if s.PriceFrom != "" {
		text += " (" + s.PriceFrom + ")"
	}
	return text
}

func budget(b pipeline.Budget) string {
	var parts []string
	if b.Cost > 0 {
		parts = append(parts, "max_cost "+money(b.Cost))
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("max_tokens %d", b.Tokens))
	}
	return strings.Join(parts, ", ")
}

// money formats a price or a limit as its author wrote it, without rounding errors.
func money(amount float64) string {
	six, _ := strconv.ParseFloat(strconv.FormatFloat(amount, 'g', 6, 64), 64) // FormatFloat wrote the text
	return strconv.FormatFloat(six, 'f', -1, 64)
}

// cost formats a computed cost.
func cost(amount float64) string {
	if amount == 0 {
		return "0"
	}
	return governor.Money(amount)
}

// writeSpending writes the effect of several spending limits.
func writeSpending(w io.Writer, s *plan.Spending) error {
	paid := slices.ContainsFunc(s.Rows, func(row plan.Spent) bool { return row.Cost > 0 })
	columns := []struct {
		name  string
		shown bool
		cell  func(plan.Spent) string
	}{
		{"CALLS", s.Limit.Calls != nil, amount},
		{"BUDGET", s.Limit.Money != nil, amount},
		{"ITEMS SENT", true, func(row plan.Spent) string { return fmt.Sprint(row.Items) }},
		{"CALLS", s.Limit.Money != nil, func(row plan.Spent) string { return fmt.Sprint(row.Calls) }},
		{"COST", paid, func(row plan.Spent) string { return cost(row.Cost) }},
		{"ERRORS EXPECTED AMONG THEM", s.Confident, func(row plan.Spent) string { return fmt.Sprintf("%.0f", row.Doubt) }},
		{"ERRORS AMONG THEM", s.Labelled > 0, func(row plan.Spent) string { return fmt.Sprint(row.Errors) }},
		{"ACCURACY AT MOST", s.Labelled > 0, func(row plan.Spent) string { return fmt.Sprintf("%.3f", row.Accuracy) }},
	}
	tw := terminal.NewTable(w)
	fmt.Fprintln(tw)
	var names []string
	for _, c := range columns {
		if c.shown {
			names = append(names, c.name)
		}
	}
	fmt.Fprintln(tw, strings.Join(names, "\t"))
	for _, row := range s.Rows {
		var cells []string
		for _, c := range columns {
			if c.shown {
				cells = append(cells, c.cell(row))
			}
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprint(w, "The items whose answers are least sure are sent first. A call counts with its resamples.")
	if s.Confident {
		fmt.Fprint(w, " Errors are expected by the confidence of the other voters' answers.")
	}
	if s.Labelled > 0 {
		fmt.Fprintf(w, " Errors and accuracy are of %s with labels: at most so much is reached, if every item that is sent is answered rightly; racflow eval measures what is.", terminal.Plural(s.Labelled, "item"))
	}
	_, err := fmt.Fprintln(w)
	return err
}

// amount formats the limit of a row.
func amount(row plan.Spent) string {
	if math.IsInf(row.Amount, 1) {
		return "no limit"
	}
	return money(row.Amount)
}
