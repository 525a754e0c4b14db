package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/interval"
	"github.com/racflow/racflow/engine/terminal"
)

// answers writes what the answers are worth.
func answers(w io.Writer, r eval.Report) {
	fmt.Fprintf(w, "accuracy\t%.4f\tof %d items with an expected label; %s\n", r.Accuracy, r.Scored, sure(r.AccuracyInterval))
	if r.Decided > 0 {
		fmt.Fprintf(w, "not scored\t%d\t%s people have decided\n", r.Decided, map[bool]string{true: "item that", false: "items that"}[r.Decided == 1])
	}
	if sc := r.Scope; sc != nil {
		fmt.Fprintf(w, "in scope\t%.4f\tof %d items right; %.1f %% left without an answer; %s\n", sc.Accuracy, sc.In, 100*sc.Unanswered, sure(sc.Interval))
		fmt.Fprintf(w, "out of scope\t%.4f\tof %d items rightly left without an answer; %s\n", sc.Recall, sc.Out, sure(sc.RecallInterval))
	}
	fmt.Fprintf(w, "macro-F1\t%.4f\tover %d labels\n", r.MacroF1, len(r.Labels))
	fmt.Fprintf(w, "agreement\t%.4f\tmean share of the votes for the answer\n", r.Agreement)
}

func sure(i interval.Interval) string { return "95 % interval " + between(i) }

func between(i interval.Interval) string { return fmt.Sprintf("%.4f to %.4f", i.Low, i.High) }

// confidence writes how far the confidence can be taken at its word.
func confidence(w io.Writer, c *eval.Calibration) {
	fmt.Fprintf(w, "ECE\t%.4f\tof the %s; perfectly calibrated ones have up to %.4f by chance\n", c.ECE, c.Measured, c.Chance)
	fmt.Fprintf(w, "NLL\t%.4f\tof whether the answer is right; Brier score %.4f\n", c.NLL, c.Brier)
}

// flags writes how many errors the flag rule catches at what cost.
func flags(w io.Writer, f eval.Flags) {
	if f.Flagged > 0 {
		fmt.Fprintf(w, "flags\t%d\tof %s caught; %d of %s are false alarms\n", f.Caught, terminal.Plural(f.Errors, "error"), f.Right, terminal.Plural(f.Flagged, "flagged item"))
	}
}

// promised writes what became of a promise.
func promised(w io.Writer, r eval.Report) {
	p := r.Promised
	if p == nil || r.Scored == 0 {
		return
	}
	row := func(name string, right, of int, what string, i interval.Interval, atLeast float64) {
		verdict := ""
		if of > 0 && i.High < atLeast {
			verdict = ": broken"
		}
		fmt.Fprintf(w, "%s\t%.4f\tof %d %s; %s; at least %v was promised%s\n", name, share(right, of), of, what, sure(i), atLeast, verdict)
	}
	row("promise", p.Right, p.Answered, fmt.Sprintf("answers without a flag (%.0f %% of the items)", 100*share(p.Answered, r.Scored)), p.Interval, p.Accuracy)
	if p.Caught > 0 && p.Outside > 0 {
		row("out of scope", p.CaughtOf, p.Outside, "items flagged or left without an answer", p.CaughtInterval, p.Caught)
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// coverage writes how often the surest items are right.
func coverage(w io.Writer, c *eval.Calibration) {
	row := func(name string, cell func(eval.Coverage) string) {
		fmt.Fprint(w, name)
		for _, point := range c.Coverage {
			fmt.Fprintf(w, "\t%s", cell(point))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
	row("SUREST", func(p eval.Coverage) string { return fmt.Sprintf("%.0f %%", 100*p.Share) })
	row("accuracy", func(p eval.Coverage) string { return fmt.Sprintf("%.4f", p.Accuracy) })
	row(c.Measured+" from", func(p eval.Coverage) string { return fmt.Sprintf("%.4f", p.Confidence) })
}

// voters writes what each voter is worth.
func voters(w io.Writer, all []eval.Voter, scored int) {
	weighed, partly := false, false
	for _, v := range all {
		weighed, partly = weighed || v.Weight != nil, partly || v.Asked < scored
	}
	fmt.Fprintf(w, "\nVOTER\tASKED\tACCURACY ALONE\t95 %% INTERVAL\tANSWERED\tACCEPTABLE")
	if weighed {
		fmt.Fprint(w, "\tWEIGHT")
	}
	for _, v := range all {
		fmt.Fprintf(w, "\n%s\t%d of %d\t%.4f\t%s\t%.1f %%\t%.1f %% of %d", v.Name, v.Asked, scored, v.Accuracy, between(v.AccuracyInterval), 100*v.Accepted, 100*v.Acceptable, v.Answers)
		if v.Weight != nil {
			fmt.Fprintf(w, "\t%.3f", *v.Weight)
		}
		if v.Leads {
			fmt.Fprint(w, ", leads")
		}
	}
	fmt.Fprintln(w)
	if len(all) < 2 {
		return
	}
	fmt.Fprintf(w, "\nPOINTS [95 %%]\tALONE, AGAINST THE ELECTION\tWHAT IT ADDS TO THE ELECTION\n")
	for _, v := range all {
		adds := "-"
		if v.Adds != nil {
			adds = points(*v.Adds)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, points(v.Alone), adds)
	}
	if partly {
		fmt.Fprintln(w, "figures of a voter are of the items that it was asked about")
	}
	var harm []string
	for _, v := range all {
		switch {
		case v.Alone.Interval().Low > 0:
			fmt.Fprintf(w, "warning: %s\n", lead(v, scored))
		case v.Alone.Gained > v.Alone.Lost:
			fmt.Fprintf(w, "%s, which may be chance\n", lead(v, scored))
		}
		if v.Adds != nil && v.Adds.Interval().High < 0 {
			harm = append(harm, v.Name)
		}
	}
	if len(harm) > 0 {
		fmt.Fprintf(w, "warning: the election would be better without %s\n", strings.Join(harm, ", or without "))
	}
}

// points writes a difference of accuracies with its interval, in hundredths.
func points(p interval.Paired) string {
	i := p.Interval()
	return fmt.Sprintf("%+.1f [%.1f, %.1f]", 100*p.Difference(), 100*i.Low, 100*i.High)
}

// lead says by how much a voter alone is better than the election.
func lead(v eval.Voter, scored int) string {
	i, of := v.Alone.Interval(), ""
	if v.Asked < scored {
		of = fmt.Sprintf(" on %d of %d items", v.Asked, scored)
	}
	return fmt.Sprintf("%s alone is right on %.1f points more than the election [%.1f, %.1f]%s", v.Name, 100*v.Alone.Difference(), 100*i.Low, 100*i.High, of)
}
