package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/plan"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// maxShown bounds the prompt that is shown, in characters.
const maxShown = 6000

func (p planned) writeForecast(w io.Writer) error {
	f, calls := p.Forecast, p.Calls()
	if f.Unknown != "" {
		_, err := fmt.Fprintf(w, "\nWhat the calls would cost is not known: %s.\n", f.Unknown)
		return err
	}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "\nESTIMATE\tITEMS\tREQUESTS\tANSWERS\tTOKENS IN\tTOKENS OUT\tCOST\n")
	total, priced, shown := 0.0, 0, ""
	for _, c := range calls {
		out, paid := "not known", price(c, c.Cost)
		if c.Limited {
			out = fmt.Sprint(c.Likely.OutputTokens)
		}
		if c.Stage.Price != nil {
			total += c.Cost
			priced++
			if !c.Limited {
				paid += " without its answers"
			}
		}
		fmt.Fprintf(tw, "sample.%s\t%d\t%d\t%d\t%d\t%s\t%s\n", c.Stage.Name, c.Items, c.Requests, c.Answers, c.Likely.InputTokens, out, paid)
		if shown == "" && c.Voter.Shown != nil {
			shown = fmt.Sprintf("\nA PROMPT OF sample.%s\n%s\n", c.Stage.Name, promptText(*c.Voter.Shown))
		}
	}
	if priced > 1 {
		fmt.Fprintf(tw, "all\t\t\t\t\t\t%s\n", cost(total))
	}
	most := writeMost(tw, calls)
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "Found with %d items of the input, asking nobody. The estimate: tokens in are characters / 4, tokens out as many as the answers may have. At most: a token per byte, a request per answer, and every resample. Requests that fail and are sent again come on top; answers in the cache cost nothing again.\n", f.Tried)
	p.writeBudget(w, total, most)
	if f.Spending != nil {
		if err := writeSpending(w, f.Spending); err != nil {
			return err
		}
	}
	if f.Failed > 0 {
		fmt.Fprintf(w, "%d of these items failed, the first with: %v\n", f.Failed, f.Cause)
	}
	_, err := io.WriteString(w, shown)
	return err
}

// price shows an amount, where the stage has a price.
func price(c plan.Call, amount float64) string {
	if c.Stage.Price == nil {
		return "no price given"
	}
	return cost(amount)
}

// bound is what a run takes at most.
type bound struct {
	tokens uint64
	cost   float64
	known  bool
}

// writeMost shows what each voter takes at most, or why nobody knows.
func writeMost(w io.Writer, calls []plan.Call) bound {
	all := bound{known: true}
	fmt.Fprintf(w, "\nAT MOST\tTOKENS IN\tTOKENS OUT\tCOST\n")
	for _, c := range calls {
		most := c.Voter.Most
		if c.Voter.Unknown != "" {
			all.known = false
			fmt.Fprintf(w, "sample.%s\tnot known: %s\n", c.Stage.Name, c.Voter.Unknown)
			continue
		}
		all.cost += c.MostCost
		all.tokens += most.InputTokens + most.OutputTokens
		fmt.Fprintf(w, "sample.%s\t%d\t%d\t%s\n", c.Stage.Name, most.InputTokens, most.OutputTokens, price(c, c.MostCost))
	}
	return all
}

// writeBudget compares what calls come to with what a run may spend.
func (p planned) writeBudget(w io.Writer, estimate float64, most bound) {
	b := p.Pipeline.Budget
	switch {
	case b.Cost > 0 && estimate > b.Cost:
		fmt.Fprintf(w, "The estimate is more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Cost > 0 && most.known && most.cost > b.Cost:
		fmt.Fprintf(w, "It may come to more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Tokens > 0 && most.known && most.tokens > uint64(b.Tokens):
		fmt.Fprintf(w, "It may come to more than max_tokens = %d, at which a run stops.\n", b.Tokens)
	}
	if text := budget(b); text != "" && !most.known {
		fmt.Fprintf(w, "Where a call has no bound, a run may exceed %s by what the calls in flight take.\n", text)
	}
}

// promptText shows a prompt as it is, but for what a terminal would obey.
func promptText(p sdk.Prompt) string {
	text := p.Text
	for _, m := range p.Messages {
		text += m.Role + ": " + m.Text + "\n"
	}
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return terminal.Visible(r)
	}, strings.TrimRight(text, "\n"))
	if all := []rune(text); len(all) > maxShown {
		text = string(all[:maxShown]) + fmt.Sprintf("… and %d characters more", len(all)-maxShown)
	}
	return text
}
