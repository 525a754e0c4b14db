package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/terminal"
)

// planned is a plan that is shown.
type planned struct{ *plan.Plan }

// entries shows a number of entries; documents is what they are made of, 0 for
// rows.
func entries(n, documents int) string {
	if documents == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d of %d documents", n, documents)
}

// Plan shows a person what a run would do.
func Plan(w io.Writer, what *plan.Plan) error {
	p := planned{what}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "VARIABLE\tVALUE\tFROM\n")
	for _, v := range p.File.Variables {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", v.Name, terminal.Shorten(v.Value, valueWidth), v.From)
	}
	fmt.Fprintf(tw, "\nKNOWLEDGE\tENTRIES\tTO EMBED\tTO REMOVE\tEMBEDDER\tSTORE\n")
	for _, k := range p.Knowledge {
		if t, ok := p.Texts[k.Name]; ok {
			fmt.Fprintf(tw, "%s\t%s\tat most %d (about %d tokens)\t?\t%s\t%s\n", k.Name, entries(t.Count, k.Documents), t.Count, t.Tokens, k.Embedder, k.Store)
			continue
		}
		if k.Attached != nil {
			writeAttached(tw, k)
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\n", k.Name, entries(k.Entries, k.Documents), k.Added+k.Changed, k.Removed, k.Embedder, k.Store)
		for _, why := range k.Anew {
			fmt.Fprintf(tw, "\t%s\n", terminal.Sanitize(why))
		}
		if k.InvalidCount > 0 {
			what := "rows"
			if k.Invalid[0].Line == 0 {
				what = "documents"
			}
			fmt.Fprintf(tw, "\t%d %s cannot be used, %s among them\n", k.InvalidCount, what, k.Invalid[0])
		}
	}
	fmt.Fprintf(tw, "\nSTAGE\tUSE\tPROCESS\tITEMS\n")
	for i, s := range p.Pipeline.Stages {
		use, process := s.Use+best(s), "its own"
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
	p.writeExpects(tw)
	if p.Invalid > 0 {
		fmt.Fprintf(tw, "\n%d rows of the input cannot be used\n", p.Invalid)
	}
	p.writeServices(tw)
	p.writeModels(tw)
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

// writeExpects shows what racflow test would ask. A run asks none of it.
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

// among says which entries a retrieve stage searches, or when it gives all.
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

// best says how many candidates a rerank stage leaves.
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
