package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/terminal"
)

// writeServices says how the stages that call services may do that.
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
	if len(lines) > 0 {
		fmt.Fprintf(w, "\nSERVICES\t\n%s\n", strings.Join(lines, "\n"))
	}
}

// services is what a stage's block says about its calls.
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

// Price says what the calls of a stage cost, and where that is written if not in its block;
// empty: nobody says.
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

// money shows a price or a limit, as somebody wrote it.
func money(amount float64) string {
	six, _ := strconv.ParseFloat(strconv.FormatFloat(amount, 'g', 6, 64), 64) // it was written by that
	return strconv.FormatFloat(six, 'f', -1, 64)
}

// cost shows what something comes to.
func cost(amount float64) string {
	if amount == 0 {
		return "0"
	}
	return governor.Money(amount)
}
