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
	fmt.Fprintf(tw, "\nENRICH\tUSE\tPASSAGES, AT MOST\t\tREQUESTS\tTOKENS IN\tTOKENS OUT\tCOST\n")
	total, unknown := 0.0, ""
	for _, k := range p.Knowledge {
		for _, a := range k.Asks {
			f, expected, most := estimate.Enrichment(a), "no price given", "no price given"
			if price := a.Stage.CallPrice(); price != nil {
				total += price.Expected(f.Likely)
				expected, most = cost(price.Expected(f.Likely)), cost(price.AtMost(f.Most))
			}
			passages := fmt.Sprint(a.Passages)
			if f.Cached > 0 {
				passages += fmt.Sprintf(" (%d from the cache)", f.Cached)
			}
			fmt.Fprintf(tw, "enrich.%s of knowledge.%s\t%s\t%s\texpected\t%d\t%d\t%d\t%s\n",
				a.Stage.Name, k.Name, a.Stage.Use, passages, f.Requests, f.Likely.InputTokens, f.Likely.OutputTokens, expected)
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
	fmt.Fprintf(w, "%sFound asking nobody. A stage that shows the whole document puts it first, and most of that is a prefix that services keep and count as cached; the cost does not count on that. What the response cache has costs nothing.\n", unknown)
	if b := p.Pipeline.Budget.Cost; b > 0 && total > b {
		fmt.Fprintf(w, "That is more than max_cost = %s, at which a build stops; the next one resumes it.\n", money(b))
	}
	return nil
}
