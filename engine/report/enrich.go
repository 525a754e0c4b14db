package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/terminal"
)

// writeEnrich shows what enriching would ask of services.
func (p planned) writeEnrich(w io.Writer) error {
	if !slices.ContainsFunc(p.Knowledge, func(k build.Report) bool { return len(k.Asks) > 0 }) {
		return nil
	}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "\nENRICH\tUSE\tPASSAGES, AT MOST\tTOKENS IN\tTOKENS OUT\tCOST\n")
	guessed, total := false, 0.0
	for _, k := range p.Knowledge {
		for _, a := range k.Asks {
			used, assumed := estimate.Enrichment(a.Stage, a.Passages, a.Characters)
			paid := "no price given"
			if a.Stage.Price != nil {
				c := a.Stage.Price.Of(used)
				total += c
				paid = cost(c)
			}
			guessed = guessed || assumed
			fmt.Fprintf(tw, "enrich.%s of knowledge.%s\t%s\t%d\t%d\t%d\t%s\n", a.Stage.Name, k.Name, a.Stage.Use, a.Passages, used.InputTokens, used.OutputTokens, paid)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "Found asking nobody: a call per passage, with %d tokens of instructions; a stage that shows the whole document puts it first, and most of that is a prefix that services keep and count as cached. Answers in the cache cost nothing again. This is an estimate: what enriching takes at most is not known.\n", estimate.Instructions)
	if guessed {
		fmt.Fprintf(w, "Where the config has no max_tokens, an addition counts as %d tokens.\n", estimate.Addition)
	}
	if b := p.Pipeline.Budget.Cost; b > 0 && total > b {
		fmt.Fprintf(w, "That is more than max_cost = %s, at which a build stops; the next one resumes it.\n", money(b))
	}
	return nil
}
