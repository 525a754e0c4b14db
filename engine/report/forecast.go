package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/racflow/racflow/engine/estimate"
	"github.com/racflow/racflow/engine/pipeline"
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
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "\nESTIMATE\tITEMS\tPROMPTS\tANSWERS\tTOKENS IN\tTOKENS OUT, AT MOST\tCOST, AT MOST\n")
	var total float64
	priced, assumed := 0, false
	var shown *sdk.Prompt
	var shownOf string
	var again []string
	for _, s := range p.Pipeline.Stages {
		v, ok := f.Voters[s.Name]
		if !ok || s.Block != "sample" {
			continue
		}
		scale := func(n int) int { return int(float64(n)*float64(p.Items)/float64(max(f.Tried, 1)) + .5) }
		cost := "no price given"
		if s.Price != nil && *s.Price != (pipeline.Price{}) {
			c := s.Price.Of(sdk.Usage{InputTokens: uint64(scale(v.Input)), OutputTokens: uint64(scale(v.Output))})
			total += c
			priced++
			cost = money(c)
		}
		fmt.Fprintf(tw, "sample.%s\t%d\t%d\t%d\t%d\t%d\t%s\n", s.Name, scale(v.Items), scale(v.Prompts), scale(v.Answers), scale(v.Input), scale(v.Output), cost)
		if s.Tries > 1 && v.Items > 0 {
			again = append(again, fmt.Sprintf("sample.%s asks an item whose answers are not accepted up to %d times, each as much again.\n", s.Name, s.Tries))
		}
		assumed = assumed || v.Assumed && v.Items > 0
		if shown == nil && v.Shown != nil {
			shown, shownOf = v.Shown, s.Name
		}
	}
	if priced > 1 {
		fmt.Fprintf(tw, "all\t\t\t\t\t\t%s\n", money(total))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "Found with %d items of the input, asking nobody. Tokens are characters / 4; answers in the cache cost nothing again.\n", f.Tried)
	fmt.Fprint(w, strings.Join(again, ""))
	if assumed {
		fmt.Fprintf(w, "Where the config has no max_tokens, an answer counts as %d tokens of text or %d of JSON, one that cites passages as %d.\n",
			estimate.LabelAnswer, estimate.JSONAnswer, estimate.CitedAnswer)
	}
	if b := p.Pipeline.Budget.Cost; b > 0 && total > b {
		fmt.Fprintf(w, "That is more than max_cost = %s, at which a run stops.\n", money(b))
	}
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
		return visible(r)
	}, strings.TrimRight(text, "\n"))
	if all := []rune(text); len(all) > maxShown {
		text = string(all[:maxShown]) + fmt.Sprintf("… and %d characters more", len(all)-maxShown)
	}
	return text
}
