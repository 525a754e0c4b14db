package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// pluginJSON is the JSON form of a third party's plugin and its permissions.
type pluginJSON struct {
	Name        string           `json:"name"`
	Version     string           `json:"version,omitempty"`
	Origin      program.Origin   `json:"origin"`
	Program     string           `json:"program"`
	Hash        string           `json:"hash"`
	Stages      []string         `json:"stages"`
	Confined    bool             `json:"confined"`
	Read        []string         `json:"read,omitempty"`    // in addition to its own folders and the system's
	Write       []string         `json:"write,omitempty"`   // in addition to its own folders
	Network     []string         `json:"network,omitempty"` // hosts with ports
	Memory      map[string]int64 `json:"memory,omitempty"`  // bytes, by stage
	NotEnforced []string         `json:"not_enforced,omitempty"`
}

func pluginOf(p plan.Plugin) pluginJSON {
	return pluginJSON{
		Name: p.Name, Version: p.Version, Origin: p.Origin, Program: p.Path, Hash: p.Hash, Stages: p.Stages, Confined: !p.Allow.Unconfined,
		Read: p.Allow.Read, Write: p.Allow.Write, Network: p.Allow.Hosts, Memory: p.Memory, NotEnforced: p.Gaps,
	}
}

// writePlugins writes what each third party's plugin may access.
func (p planned) writePlugins(w io.Writer) error {
	for _, one := range p.Plugins {
		table := terminal.NewTable(w)
		line := func(what, text string) { fmt.Fprintf(table, "  %s\t%s\n", what, terminal.Sanitize(text)) }
		fmt.Fprintf(table, "\nPLUGIN %s\t%s\n", one.Name, strings.Join(one.Stages, ", "))
		line("program", one.Path)
		origin := map[program.Origin]string{
			program.Locked: "locked with the file", program.Linked: "in development, linked from " + one.Project, program.Given: "in development, given by a folder",
		}[one.Origin]
		line("origin", strings.TrimPrefix(one.Version+", "+origin, ", "))
		line("hash", one.Hash)
		if one.Allow.Unconfined {
			line("not confined", "it reads, changes and reaches whatever you can")
		} else {
			line("reads", strings.Join(append([]string{"the system's programs and libraries", "its own folders"}, one.Allow.Read...), ", "))
			line("writes", strings.Join(append([]string{"its own folders"}, one.Allow.Write...), ", "))
			line("network", cmp.Or(strings.Join(one.Allow.Hosts, ", "), "none"))
		}
		var bounds []string
		for _, stage := range one.Stages {
			if most := one.Memory[stage]; most > 0 {
				bounds = append(bounds, memory.Size(most)+" of "+stage)
			}
		}
		line("memory", cmp.Or(strings.Join(bounds, ", "), "any"))
		for _, gap := range one.Gaps {
			line("not enforced", gap+": this system cannot keep it from that")
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if most := p.Pipeline.Memory; most > 0 {
		if _, err := fmt.Fprintf(w, "\nAll processes together may hold %s.\n", memory.Size(most)); err != nil {
			return err
		}
	}
	return nil
}

// property is one property of a model's profile, as text.
type property struct{ name, value string }

// properties returns the properties of a profile, in the profile's order.
func properties(profile json.RawMessage) []property {
	d := json.NewDecoder(bytes.NewReader(profile))
	d.UseNumber()
	if _, err := d.Token(); err != nil { // the opening brace
		return nil
	}
	var all []property
	for d.More() {
		name, err := d.Token()
		var value any
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return all
		}
		if inside, ok := value.(map[string]any); ok { // counts, sorted by name
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(inside)) {
				if counts, ok := inside[name].(map[string]any); ok { // counts of one kind of requests
					parts = append(parts, fmt.Sprintf("%s (%v requests)", name, counts["requests"]))
					continue
				}
				parts = append(parts, fmt.Sprintf("%v %s", inside[name], name))
			}
			value = strings.Join(parts, ", ")
		}
		all = append(all, property{terminal.Sanitize(fmt.Sprint(name)), terminal.Sanitize(fmt.Sprint(value))})
	}
	return all
}

// unknown reports whether the property has no known value.
func (p property) unknown() bool {
	return p.value == "unknown" || p.value == "0" || p.value == "<nil>" || p.value == ""
}

// profileLine returns a model's profile in one line.
func profileLine(profile json.RawMessage) string {
	if profile == nil {
		return "not known yet: its first call finds out, or racflow model probe"
	}
	listed := map[string][]string{}
	var rest []string
	for _, p := range properties(profile) {
		switch {
		case p.unknown() || p.name == "probed":
		case p.value == "yes" || p.value == "no":
			listed[p.value] = append(listed[p.value], p.name)
		default:
			rest = append(rest, p.name+" "+p.value)
		}
	}
	var parts []string
	for _, value := range []string{"yes", "no"} {
		if names := listed[value]; names != nil {
			parts = append(parts, value+": "+strings.Join(names, ", "))
		}
	}
	return strings.Join(append(parts, rest...), "; ")
}

// writeModels writes the profiles of the models that stages ask.
func (p planned) writeModels(w io.Writer) {
	if len(p.Models) == 0 {
		return
	}
	fmt.Fprintf(w, "\nASKS\tMODEL\tPROFILE\n")
	for _, m := range p.Models {
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.Stage, terminal.Sanitize(m.Name), profileLine(m.Profile))
	}
}

// Models writes the profiles of models for people, each as a table.
func Models(w io.Writer, all []plan.Model) error {
	for i, m := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		asks := ""
		if m.Stage != "" {
			asks = ", asked by " + m.Stage
		}
		fmt.Fprintf(w, "%s at %s%s\n", terminal.Sanitize(m.Name), terminal.Sanitize(m.Endpoint), asks)
		tw := terminal.NewTable(w)
		for _, p := range properties(m.Profile) {
			if p.value == "0" {
				p.value = "-"
			}
			fmt.Fprintf(tw, "  %s\t%s\n", p.name, p.value)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if m.File != "" {
			fmt.Fprintf(w, "kept in %s, which may be edited\n", m.File)
		}
	}
	return nil
}

// bounds explains the brackets after a difference.
const bounds = "[bounds that hold with 95 % confidence each]"

// Tune writes the results of tuning for people: the trade-off curve, and the figures of the choice,
// all measured on held-out rows. It also writes the promise, if it is not nil.
func Tune(w io.Writer, s tune.Subject, o tune.Outcome, promised *tune.FlagPromise) error {
	if !s.Nothing() {
		if err := tuned(w, s, o); err != nil {
			return err
		}
	}
	if promised == nil {
		return nil
	}
	if !s.Nothing() {
		fmt.Fprintln(w)
	}
	_, err := io.WriteString(w, promised.String())
	return err
}

func tuned(w io.Writer, s tune.Subject, o tune.Outcome) error {
	tw := terminal.NewTable(w)
	priced := o.Curve[len(o.Curve)-1].Cost > 0
	row := func(name string, p tune.Point, note string) {
		fmt.Fprintf(tw, "%s\t%.1f %%\t%.4f\t", name, 100*p.Sent, p.Accuracy)
		if priced {
			fmt.Fprintf(tw, "%.4f\t", p.Cost)
		}
		fmt.Fprintln(tw, note)
	}
	fmt.Fprintf(tw, "%d items in %d folds; accuracy and share on the fold that was left out\n\n", o.Items, o.Folds)
	if s.Variable != "" {
		fmt.Fprintf(tw, "%s\tSENT\tACCURACY\t", s.Variable)
		if priced {
			fmt.Fprint(tw, "COST OF 1,000 ITEMS\t")
		}
		fmt.Fprintln(tw)
		for k, p := range o.Curve {
			note := ""
			if k == o.Chosen && !o.Stays {
				note = "<- chosen"
			}
			row(fmt.Sprintf("%.4f", p.Threshold), p, note)
		}
		fmt.Fprintln(tw)
		row("the choice", o.Choice, "made for each fold on the others")
		row(fmt.Sprintf("%.4f", s.Now()), o.Present, "of the file")
	}
	if s.Weights == "" {
		fmt.Fprintf(tw, "everything sent\t\t%.4f\t\n", o.Plain)
	} else {
		fmt.Fprintf(tw, "everything sent, %s tuned\t\t%.4f\t\n", s.Weights, o.Fitted)
		fmt.Fprintf(tw, "everything sent, %s of the file\t\t%.4f\t\n", s.Weights, o.Plain)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if s.Variable != "" {
		fmt.Fprintf(w, "\nthe choice against everything sent: %s\n", o.Against)
	}
	if o.Stays {
		fmt.Fprintf(w, "%s; --overall-accuracy, --share or --cost find a cheaper one\n", kept(s.Variable, false, o.Better))
	}
	if s.Weights != "" {
		note := ""
		switch {
		case o.Found == nil || o.Gain.Better():
		case o.Gain.Mean >= 0 && o.Sure.Better():
			note = "; kept for its confidences, which are better by more than chance"
		default:
			note = "; kept for what tells items out of scope, which is better by more than chance"
		}
		fmt.Fprintln(w, kept(s.Weights, o.Found != nil, o.Gain)+note)
	}
	_, err := fmt.Fprintln(w, bounds)
	return err
}

// kept describes whether a found value is kept, and why.
func kept(what string, kept bool, gain tune.Difference) string {
	if kept {
		return fmt.Sprintf("%s: %s", what, gain)
	}
	return fmt.Sprintf("%s: stays as it is, because what was found is not better beyond chance: %s", what, gain)
}

// tunedJSON is the JSON form of the results of tuning.
type tunedJSON struct {
	Items     int          `json:"items,omitempty"`     // rows that tuning used for thresholds and weights
	Folds     int          `json:"folds,omitempty"`     //
	Variable  string       `json:"variable,omitempty"`  // of the threshold
	Curve     []tune.Point `json:"curve,omitempty"`     // each point on rows that its threshold was not tuned on
	Chosen    *tune.Point  `json:"chosen,omitempty"`    // point of the curve, or the threshold of the file
	Weighted  string       `json:"weighted,omitempty"`  // the variable of the voters' weights
	Weights   any          `json:"weights,omitempty"`   // absent: the file's weights stay
	Accuracy  float64      `json:"accuracy,omitempty"`  // with everything sent and the file's weights
	Tuned     float64      `json:"tuned,omitempty"`     // with everything sent and weights tuned on other rows
	Promise   *promiseJSON `json:"promise,omitempty"`   //
	Variables string       `json:"variables,omitempty"` // the file of variables with these values
}

type promiseJSON struct {
	Accuracy   float64 `json:"accuracy"`
	Confidence float64 `json:"confidence"`
	Threshold  float64 `json:"threshold"`
	Rows       int     `json:"rows"`
	Answered   int     `json:"answered"`
	Right      int     `json:"right"`
	Outside    int     `json:"out"`     // of Rows: out of scope
	Unknown    float64 `json:"unknown"` // the share of texts out of scope up to which the promise holds
}

// TunedJSON returns the results of tuning in their JSON form.
func TunedJSON(s tune.Subject, o tune.Outcome, promised *tune.FlagPromise, variables string) any {
	t := tunedJSON{Variables: variables}
	if !s.Nothing() {
		t.Items, t.Folds, t.Variable, t.Weighted, t.Accuracy, t.Tuned = o.Items, o.Folds, s.Variable, s.Weights, o.Plain, o.Fitted
		if o.Found != nil {
			t.Weights = o.Found
		}
		if s.Variable != "" {
			t.Curve, t.Chosen = o.Curve, &o.Curve[o.Chosen]
			if o.Stays {
				t.Chosen = &o.Present
			}
		}
	}
	if p := promised; p != nil {
		t.Promise = &promiseJSON{p.Goal.Accuracy, p.Goal.Confidence, p.Threshold(), p.Rows, p.Answered, p.Right, p.Outside, p.Unknown()}
	}
	return t
}
