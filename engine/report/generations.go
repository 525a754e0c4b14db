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

	"github.com/racflow/racflow/engine/knowledge/generation"
	"github.com/racflow/racflow/engine/terminal"
)

const (
	configWidth = 40 // runes of a config
	valueWidth  = 64 // of the value of a variable, a label or a rule
)

// Generations shows what stores hold of knowledge.
type Generations struct {
	w    io.Writer
	rows []row
}

// row is a generation in the list. What its builder did not note is empty.
type row struct {
	Knowledge  string           `json:"knowledge"`
	Store      string           `json:"store"`
	Collection string           `json:"collection"`
	State      generation.State `json:"state"`
	Current    *bool            `json:"current"` // null: not known
	Entries    int              `json:"entries"`
	Documents  int              `json:"documents,omitempty"`
	Source     string           `json:"source,omitempty"`
	Embedder   string           `json:"embedder,omitempty"`
	Config     json.RawMessage  `json:"config,omitempty"`   // of the embedder
	Resolved   json.RawMessage  `json:"resolved,omitempty"` // what the embedder chose itself
	Chunker    string           `json:"chunker,omitempty"`
	Cut        json.RawMessage  `json:"cut,omitempty"` // config of the chunker
	Analyzer   string           `json:"analyzer,omitempty"`

	EmbedderPlugin *generation.Plugin `json:"embedder_plugin,omitempty"` // of third parties
	ChunkerPlugin  *generation.Plugin `json:"chunker_plugin,omitempty"`

	Enrich  []generation.Enrichment `json:"enrich,omitempty"`
	File    string                  `json:"file,omitempty"` // that built it
	Built   time.Time               `json:"built,omitzero"`
	Changed time.Time               `json:"changed,omitzero"`
}

// NewGenerations returns a list without rows.
func NewGenerations(w io.Writer) *Generations { return &Generations{w: w} }

// Add adds the generations of a knowledge in a store.
func (l *Generations) Add(name, store string, h *generation.History) {
	for _, g := range h.Generations {
		one := row{
			Knowledge: name, Store: store, Collection: g.Collection, State: g.State, Entries: g.Entries, Documents: g.Documents,
			Chunker: g.Chunker, Cut: g.Cut, Enrich: g.Enrich, EmbedderPlugin: g.EmbedderPlugin, ChunkerPlugin: g.ChunkerPlugin,
			Source: strings.Join(append([]string{g.Path}, g.Beside...), " + "), Embedder: g.Embedder, Config: g.Config, Resolved: g.Resolved, Analyzer: g.Analyzer, File: g.File, Built: g.Built, Changed: g.Changed,
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

// Table shows the generations to a person.
func (l *Generations) Table() error {
	tw := terminal.NewTable(l.w)
	fmt.Fprintln(tw, "KNOWLEDGE\tCOLLECTION\tSTATE\tENTRIES\tBUILT\tCHANGED\tENRICHED BY\tEMBEDDER\tANALYZER\tSOURCE")
	for _, r := range l.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Knowledge, r.Collection, r.State, entries(r.Entries, r.Documents), moment(r.Built), moment(r.Changed), enrichers(r.Enrich),
			recorded(strings.TrimSpace(r.Embedder+versionOf(r.EmbedderPlugin)+" "+settings(r.Config, r.Resolved))), r.recorded(r.Analyzer), r.recorded(r.Source))
	}
	return tw.Flush()
}

// enrichers names what enriches.
func enrichers(all []generation.Enrichment) string {
	var names []string
	for _, e := range all {
		names = append(names, e.Use+versionOf(e.Plugin))
	}
	return cmp.Or(terminal.Line(strings.Join(names, ", ")), "-")
}

// versionOf is what stands behind the name of a third party's stage.
func versionOf(p *generation.Plugin) string {
	if p == nil || p.Version == "" {
		return ""
	}
	return " " + p.Version
}

// moment shows a time in the reader's own zone.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// recorded shows what a generation's note says; an old one may not say it.
func recorded(text string) string {
	switch text {
	case "":
		return "?"
	case "-":
		return "standard input"
	}
	return terminal.Line(text)
}

// recorded is that of the function, of what racflow has made.
func (r row) recorded(text string) string {
	if r.State == generation.Attached {
		return "its owner's"
	}
	return recorded(text)
}

// settings shows a stage's config, and what it has resolved, in one line.
func settings(objects ...json.RawMessage) string {
	all := map[string]any{}
	for _, object := range objects {
		_ = json.Unmarshal(object, &all) // it may be empty
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, all[name]))
	}
	return terminal.Shorten(strings.Join(parts, " "), configWidth)
}
