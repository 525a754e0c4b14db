package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk"
)

// maxShown is the maximum number of shown characters of a prompt.
const maxShown = 6000

func (p planned) writeForecast(w io.Writer) error {
	f, calls := p.Forecast, p.Calls()
	if f.Unknown != "" {
		_, err := fmt.Fprintf(w, "\nWhat the calls would cost is not known: %s.\n", f.Unknown)
		return err
	}
	tw := terminal.NewTable(w)
	fmt.Fprintf(tw, "\nFORECAST\tITEMS\tANSWERS\t\tREQUESTS\tTOKENS IN\tTOKENS OUT\tCOST\n")
	total, most, priced, shown := 0.0, bound{known: true}, 0, ""
	for _, c := range calls {
		answers := fmt.Sprint(c.Answers)
		if c.Cached > 0 {
			answers += fmt.Sprintf(" (and %d from the cache)", c.Cached)
		}
		fmt.Fprintf(tw, "sample.%s\t%d\t%s\texpected\t%d\t%d\t%s\t%s\n",
			c.Stage.Name, c.Items, answers, c.Requests, c.Likely.InputTokens, outputs(c.Forecast), expected(c.Stage, c.Forecast))
		if c.Unknown == "" {
			fmt.Fprintf(tw, "\t\t\tat most\t%d\t%d\t%d\t%s\n", c.MostRequests, c.Most.InputTokens, c.Most.OutputTokens, price(c.Stage, c.MostCost))
		} else {
			fmt.Fprintf(tw, "\t\t\tat most\tnot known\n")
		}
		total += c.Cost
		if c.Stage.Price != nil {
			priced++
		}
		most.add(c)
		if prompt := c.Voter.Shown(); shown == "" && prompt != nil {
			text := promptText(*prompt)
			if p.Pipeline.HasPrivate() {
				text = "not shown: it has values of the environment, or of a file outside of the folder"
			}
			shown = fmt.Sprintf("\nA PROMPT OF sample.%s\n  %s\n", c.Stage.Name, text)
		}
	}
	if priced > 1 {
		fmt.Fprintf(tw, "all\t\t\texpected\t\t\t\t%s\n", cost(total))
		if most.known {
			fmt.Fprintf(tw, "\t\t\tat most\t\t\t\t%s\n", cost(most.cost))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, c := range calls {
		if c.Unknown != "" {
			fmt.Fprintf(w, "What sample.%s takes at most is not known: %s.\n", c.Stage.Name, c.Unknown)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.StandIns)) {
		fmt.Fprintf(w, "Chunks stand in for the entries of knowledge.%s: %s. A run may find others, of the same lengths.\n", name, f.StandIns[name])
	}
	if f.Beside != "" {
		fmt.Fprintf(w, "Not counted: %s.\n", f.Beside)
	}
	fmt.Fprintf(w, "Found with %d items of the input, asking nobody. Expected: each item is asked once. At most: a token for each byte, a request for each answer, and every resample. Requests whose reply was lost are sent and may be paid for again; what the response cache has costs nothing.\n", f.Tried)
	writeCalibrating(w, f.Calibrating)
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

// writeCalibrating writes the calls that a run makes before the first item or, if it makes none, how
// votes are weighed.
func writeCalibrating(w io.Writer, c *plan.Calibrating) {
	if c == nil {
		return
	}
	text := c.String()
	switch {
	case c.Done:
		fmt.Fprintf(w, "elect.%s has learnt from answers of %s about %s, and asks no more.\n", c.Election.Name, c.Names(), terminal.Plural(c.Rows, "example"))
		return
	case c.Wanted:
		text = fmt.Sprintf("Before the first item, a run asks %s about %s, once", c.Names(), terminal.Plural(c.Rows, "example"))
	}
	fmt.Fprintf(w, "%s (%s, about %s).\n", text, terminal.Plural(c.Calls, "request"), cost(c.Cost))
}

// price formats an amount, if the stage has a price.
func price(s *pipeline.Stage, amount float64) string {
	if s.Price == nil {
		return "no price given"
	}
	return cost(amount)
}

// wide is the ratio of the ends of a range above which the range is shown.
const wide = 1.1

// ranged reports whether the expected output is a range.
func ranged(f sdk.Forecast) bool { return float64(f.High) > wide*float64(f.Low) }

// outputs formats the expected output tokens.
func outputs(f sdk.Forecast) string {
	if !ranged(f) {
		return fmt.Sprint(f.Likely.OutputTokens)
	}
	return fmt.Sprintf("%d (%d to %d)", f.Likely.OutputTokens, f.Low, f.High)
}

// expected formats the expected cost.
func expected(s *pipeline.Stage, f sdk.Forecast) string {
	p := s.CallPrice()
	if p == nil {
		return price(s, 0)
	}
	at := func(out uint64) string {
		return cost(p.Of(sdk.Usage{InputTokens: f.Likely.InputTokens, CachedTokens: f.Likely.CachedTokens, OutputTokens: out}))
	}
	if !ranged(f) {
		return at(f.Likely.OutputTokens)
	}
	return fmt.Sprintf("%s (%s to %s)", at(f.Likely.OutputTokens), at(f.Low), at(f.High))
}

// bound is an upper bound of a run's usage.
type bound struct {
	tokens uint64
	cost   float64
	known  bool
}

func (b *bound) add(c plan.Call) {
	b.known = b.known && c.Unknown == ""
	b.cost += c.MostCost
	b.tokens += c.Most.InputTokens + c.Most.OutputTokens
}

// writeBudget compares the forecast with the budget of a run.
func (p planned) writeBudget(w io.Writer, expected float64, most bound) {
	b := p.Pipeline.Budget
	switch {
	case b.Cost > 0 && expected > b.Cost:
		fmt.Fprintf(w, "The expected cost is more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Cost > 0 && most.known && most.cost > b.Cost:
		fmt.Fprintf(w, "It may come to more than max_cost = %s, at which a run stops.\n", money(b.Cost))
	case b.Tokens > 0 && most.known && most.tokens > uint64(b.Tokens):
		fmt.Fprintf(w, "It may come to more than max_tokens = %d, at which a run stops.\n", b.Tokens)
	}
	if text := budget(b); text != "" && !most.known {
		fmt.Fprintf(w, "Where a call has no bound, a run may exceed %s by what the calls in flight take.\n", text)
	}
}

// promptText returns the first maxShown characters of a prompt, with control characters replaced by U+FFFD.
func promptText(p sdk.Prompt) string {
	text := p.Text
	for _, m := range p.Messages {
		text += m.Role + ": " + m.Text + "\n"
	}
	text = terminal.Visible(strings.TrimRight(text, "\n"), "\n\t")
	if all := []rune(text); len(all) > maxShown {
		text = string(all[:maxShown]) + fmt.Sprintf("… and %d characters more", len(all)-maxShown)
	}
	return strings.ReplaceAll(text, "\n", "\n  ") // so that no line looks like racflow's own output
}

// Progress describes the progress of work, as parts of one line, the most important first.
func Progress(s progress.Step, m *progress.Meter, now time.Time) []string {
	what := s.Doing
	if s.Name != "" {
		what += " " + s.Name
	}
	far := quantity(s.Done, s.Unit)
	switch {
	case s.Total > 0 && s.About:
		far = quantities(s.Done, s.Total, s.Unit, " of about ")
	case s.Total > 0:
		far = quantities(s.Done, s.Total, s.Unit, " of ")
	}
	parts := []string{what + ": " + far}
	if left, ok := m.Left(now); ok {
		parts = append(parts, "about "+duration(left)+" left")
	}
	for _, one := range []struct {
		n    int64
		what string
	}{{s.Flagged, "flagged"}, {s.Failed, "failed"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if s.Paid > 0 {
		paid := "cost so far " + governor.Money(s.Paid)
		if all, ok := m.Cost(now); ok {
			paid += " of about " + governor.Money(all)
		}
		parts = append(parts, paid)
	}
	if s.Passages > 0 {
		parts = append(parts, quantity(s.Passages, "passage"))
	}
	if rate, ok := m.Rate(now); ok {
		switch {
		case s.Unit == progress.BytesUnit:
			parts = append(parts, quantity(int64(rate+0.5), s.Unit)+"/s")
		case rate >= 2:
			parts = append(parts, fmt.Sprintf("%.0f/s", rate))
		default:
			parts = append(parts, fmt.Sprintf("%.0f per minute", 60*rate))
		}
	}
	return parts
}

// quantity formats a number with its unit.
func quantity(n int64, unit string) string {
	switch unit {
	case "":
		return fmt.Sprint(n)
	case progress.BytesUnit:
		return terminal.Bytes(n)
	}
	return terminal.Plural(int(n), unit)
}

// quantities formats two numbers with one unit.
func quantities(n, of int64, unit, between string) string {
	digits := fmt.Sprint(n)
	if unit == progress.BytesUnit {
		digits, _ = terminal.BytesLike(n, of)
	}
	return digits + between + quantity(of, unit)
}

// duration formats a time for people: 45 s, 3 min, 2 h 10 min.
func duration(d time.Duration) string {
	switch minutes := int(d / time.Minute); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < 10*time.Minute && d%time.Minute != 0:
		return fmt.Sprintf("%d min %d s", minutes, int(d%time.Minute/time.Second))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	default:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
}
