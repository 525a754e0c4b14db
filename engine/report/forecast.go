package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// Forecast is what the calls of voters would come to.
type Forecast struct {
	Unknown string // why that cannot be said; empty: it can
	Tried   int    // items of the input that it was found with
	Failed  int    // of these
	Cause   error  // of the first failure
	Voters  map[string]estimate.Voter
}

// maxShown bounds the prompt that is shown, in characters.
const maxShown = 6000

func (p Plan) writeForecast(w io.Writer) error {
	f := p.Forecast
	if f.Unknown != "" {
		_, err := fmt.Fprintf(w, "\nWhat the calls would cost is not known: %s.\n", f.Unknown)
		return err
	}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "\nESTIMATE\tITEMS\tREQUESTS\tANSWERS\tTOKENS IN\tTOKENS OUT\tCOST\n")
	var total float64
	priced := 0
	var shown *sdk.Prompt
	var shownOf string
	for _, s := range p.asked() {
		v := f.Voters[s.Name]
		likely, out, cost := f.scaled(v.Likely, p.Items), "not known", "no price given"
		limited := v.Answers == 0 || likely.OutputTokens > 0
		if limited {
			out = fmt.Sprint(likely.OutputTokens)
		}
		if s.Price != nil {
			c := s.Price.Of(likely)
			total += c
			priced++
			if cost = money(c); !limited {
				cost += " without its answers"
			}
		}
		fmt.Fprintf(tw, "sample.%s\t%d\t%d\t%d\t%d\t%s\t%s\n", s.Name, f.scale(v.Items, p.Items), f.scale(v.Requests, p.Items), f.scale(v.Answers, p.Items), likely.InputTokens, out, cost)
		if shown == nil && v.Shown != nil {
			shown, shownOf = v.Shown, s.Name
		}
	}
	if priced > 1 {
		fmt.Fprintf(tw, "all\t\t\t\t\t\t%s\n", money(total))
	}
	most := p.writeMost(tw)
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "Found with %d items of the input, asking nobody. The estimate: tokens in are characters / 4, tokens out as many as the answers may have. At most: a token per byte, a request per answer, and every try. Requests that fail and are sent again come on top; answers in the cache cost nothing again.\n", f.Tried)
	p.writeBudget(w, total, most)
	if f.Failed > 0 {
		fmt.Fprintf(w, "%d of these items failed, the first with: %v\n", f.Failed, f.Cause)
	}
	if shown == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nA PROMPT OF sample.%s\n%s\n", shownOf, promptText(*shown))
	return err
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
