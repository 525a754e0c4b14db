package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// writeAttached describes a collection that another program makes: the meaning of its fields, and
// how well its vectors match the embedder's.
func writeAttached(w io.Writer, k knowledge.BuildReport) {
	a := k.Attached
	fmt.Fprintf(w, "%s\t%d\tread only\t-\t%s\t%s\n", k.Name, k.Entries, k.Embedder, k.Store)
	fmt.Fprintf(w, "\tcollection %s: %s\n", terminal.Line(a.Collection), a.Sampled())
	for _, f := range a.Fields {
		fmt.Fprintf(w, "\t%s from %s (%s)\n", terminal.Line(f.Part), terminal.Line(f.Field), terminal.Line(f.Why))
	}
	for _, note := range a.Notes {
		fmt.Fprintf(w, "\t%s\n", terminal.Line(note))
	}
	if doubt := a.Doubt(); doubt != "" {
		fmt.Fprintf(w, "\twarning: %s\n", doubt)
	}
}

// mode returns the search mode of a retrieve stage.
func (p planned) mode(r *pipeline.Retrieve) string {
	at := slices.IndexFunc(p.Knowledge, func(k knowledge.BuildReport) bool { return k.Name == r.From.Name })
	if at >= 0 && p.Knowledge[at].Attached != nil && !p.Knowledge[at].Attached.Lexical && r.Ranking.Mode == sdk.ModeHybrid {
		return "dense (hybrid, without words)"
	}
	return string(r.Ranking.Mode)
}

// writeEnrich writes the forecast of the calls of enrichers.
func (p planned) writeEnrich(w io.Writer) error {
	if !slices.ContainsFunc(p.Knowledge, func(k knowledge.BuildReport) bool { return len(k.Asks) > 0 }) {
		return nil
	}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "\nENRICH\tUSE\tPASSAGES, AT MOST\t\tREQUESTS\tTOKENS IN\tTOKENS OUT\tCOST\n")
	total, unknown := 0.0, ""
	for _, k := range p.Knowledge {
		for _, a := range k.Asks {
			f, most := plan.EnrichForecast(a), "no price given"
			if price := a.Stage.CallPrice(); price != nil {
				total += price.Of(f.Likely)
				most = cost(price.AtMost(f.Most))
			}
			passages := fmt.Sprint(a.Passages)
			if f.Cached > 0 {
				passages += fmt.Sprintf(" (%d from the cache)", f.Cached)
			}
			fmt.Fprintf(tw, "enrich.%s of knowledge.%s\t%s\t%s\texpected\t%d\t%d\t%s\t%s\n",
				a.Stage.Name, k.Name, a.Stage.Use, passages, f.Requests, f.Likely.InputTokens, outputs(f), expected(a.Stage, f))
			if f.Unknown == "" {
				fmt.Fprintf(tw, "\t\t\tat most\t%d\t%d\t%d\t%s\n", f.MostRequests, f.Most.InputTokens, f.Most.OutputTokens, most)
				continue
			}
			fmt.Fprintf(tw, "\t\t\tat most\tnot known\n")
			unknown += fmt.Sprintf("What enrich.%s takes at most is not known: %s.\n", a.Stage.Name, f.Unknown)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%sFound asking nobody. A stage that shows the whole document puts it first, and most of that is a prefix that services keep and count as cached; the cost counts on that as far as earlier runs had it. What the response cache has costs nothing.\n", unknown)
	if b := p.Pipeline.Budget.Cost; b > 0 && total > b {
		fmt.Fprintf(w, "That is more than max_cost = %s, at which a build stops; the next one resumes it.\n", money(b))
	}
	return nil
}

const (
	configWidth = 40 // runes of a config
	valueWidth  = 64 // runes of the value of a variable, a label or a rule
)

// Generations writes the generations of knowledge in stores.
type Generations struct {
	w    io.Writer
	rows []row
}

// row is a generation in the list. A field that its builder did not record is empty.
type row struct {
	Knowledge  string           `json:"knowledge"`
	Store      string           `json:"store"`
	Collection string           `json:"collection"`
	State      generation.State `json:"state"`
	Current    *bool            `json:"current"` // null: unknown
	Entries    int              `json:"entries"`
	Documents  int              `json:"documents,omitempty"`
	// Unread sums up the contents of documents that were not read; UnreadIn has them by document.
	Unread   document.Unread            `json:"unread,omitempty"`
	UnreadIn map[string]document.Unread `json:"unread_in,omitempty"`
	Source   string                     `json:"source,omitempty"`
	generation.Origin
}

// NewGenerations returns a list without rows.
func NewGenerations(w io.Writer) *Generations { return &Generations{w: w} }

// Add adds the generations of a knowledge in a store.
func (l *Generations) Add(name, store string, h *generation.History) {
	for _, g := range h.Generations {
		one := row{
			Knowledge: name, Store: store, Collection: g.Collection, State: g.State, Entries: g.Entries, Documents: g.Documents,
			Unread: generation.SumUnread(g.Unread), UnreadIn: g.Unread,
			Source: strings.Join(append([]string{g.Path}, g.Beside...), " + "), Origin: g.Origin,
		}
		if h.Doubt == nil {
			one.Current = &g.Current
		}
		l.rows = append(l.rows, one)
	}
}

// JSON writes a JSON object for each generation.
func (l *Generations) JSON() error {
	enc := json.NewEncoder(l.w)
	for _, row := range l.rows {
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// Table writes the generations for people.
func (l *Generations) Table() error {
	tw := terminal.NewTable(l.w)
	fmt.Fprintln(tw, "KNOWLEDGE\tCOLLECTION\tSTATE\tENTRIES\tBUILT\tCHANGED\tENRICHED BY\tEMBEDDER\tANALYZER\tSOURCE")
	for _, r := range l.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Knowledge, r.Collection, r.State, entries(r.Entries, r.Documents), moment(r.Built), moment(r.Changed), enrichers(r.Enrich),
			recorded(strings.TrimSpace(r.Embedder+versionOf(r.EmbedderPlugin)+" "+settings(r.Resolved, r.Config))), r.recorded(r.Analyzer), r.recorded(r.Source))
	}
	return tw.Flush()
}

// enrichers names the enrichers.
func enrichers(all []generation.Enrichment) string {
	var names []string
	for _, e := range all {
		names = append(names, e.Use+versionOf(e.Plugin))
	}
	return cmp.Or(terminal.Line(strings.Join(names, ", ")), "-")
}

// versionOf returns the version after the name of a third party's stage.
func versionOf(p *generation.Plugin) string {
	if p == nil || p.Version == "" {
		return ""
	}
	return " " + p.Version
}

// moment formats a time in the local time zone.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// recorded formats a text of a generation's record; an old record may not have it.
func recorded(text string) string {
	switch text {
	case "":
		return "?"
	case "-":
		return "standard input"
	}
	return terminal.Line(text)
}

// recorded is like the function recorded; for an attached collection, it says that the owner decides.
func (r row) recorded(text string) string {
	if r.State == generation.Attached {
		return "its owner's"
	}
	return recorded(text)
}

// settings formats the values that a stage has resolved, followed by the rest of its config, in one
// line.
func settings(resolved, config json.RawMessage) string {
	chosen, all := map[string]any{}, map[string]any{}
	_ = json.Unmarshal(resolved, &chosen) // may fail: resolved may be empty
	_ = json.Unmarshal(config, &all)
	maps.DeleteFunc(all, func(name string, _ any) bool { _, ok := chosen[name]; return ok })
	var parts []string
	for _, some := range []map[string]any{chosen, all} {
		for _, name := range slices.Sorted(maps.Keys(some)) {
			parts = append(parts, fmt.Sprintf("%s=%v", name, some[name]))
		}
	}
	return terminal.Shorten(strings.Join(parts, " "), configWidth)
}
