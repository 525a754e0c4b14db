package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/racflow/racflow/engine/knowledge/attached"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// The JSON form of an attached collection in a plan.
type (
	attachedJSON struct {
		Collection string      `json:"collection"`
		Fields     []fieldJSON `json:"fields"`
		Notes      []string    `json:"notes,omitempty"`
		Lexical    bool        `json:"lexical"` // it can be searched by words
		Sample     int         `json:"sample"`  // entries
		Whole      bool        `json:"whole"`   // the sample is all of it
		Compared   int         `json:"compared"`
		Cosine     *float64    `json:"cosine,omitempty"` // mean, of its vectors with those of the embedder over the compared entries
	}
	fieldJSON struct {
		Part  string `json:"part"`
		Field string `json:"field"`
		Why   string `json:"why"`
	}
)

func attachedOf(a *attached.Report) *attachedJSON {
	if a == nil {
		return nil
	}
	shown := &attachedJSON{Collection: a.Collection, Fields: []fieldJSON{}, Notes: a.Notes, Lexical: a.Lexical, Sample: a.Sample, Whole: a.Whole, Compared: a.Compared}
	for _, f := range a.Fields {
		shown.Fields = append(shown.Fields, fieldJSON(f))
	}
	if a.Compared > 0 {
		shown.Cosine = new(a.Cosine)
	}
	return shown
}

// writeAttached shows a collection that somebody else makes: which of its fields are what, and how it
// compares with the embedder.
func writeAttached(w io.Writer, k build.Report) {
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

// mode is how a retrieve stage searches.
func (p planned) mode(r *pipeline.Retrieve) string {
	at := slices.IndexFunc(p.Knowledge, func(k build.Report) bool { return k.Name == r.From.Name })
	if at >= 0 && p.Knowledge[at].Attached != nil && !p.Knowledge[at].Attached.Lexical && r.Ranking.Mode == sdk.ModeHybrid {
		return "dense (hybrid, without words)"
	}
	return string(r.Ranking.Mode)
}
