package verify

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// Report is the outcome of all checks of a plugin.
type Report struct {
	Plugin, Version string
	Stages          []Stage
}

// Stage is the outcome of the checks of one stage.
type Stage struct {
	Name    string // KIND/NAME
	Results []conformance.Result
}

// Count returns the number of checks, and how many failed or were skipped.
func (r *Report) Count() (all, failed, skipped int) {
	for _, s := range r.Stages {
		for _, c := range s.Results {
			all++
			switch c.Status {
			case conformance.Failed:
				failed++
			case conformance.Skipped:
				skipped++
			}
		}
	}
	return all, failed, skipped
}

// Line writes the outcome of one check for people, with the reason and advice if it failed.
func Line(w io.Writer, stage string, c conformance.Result) error {
	var text strings.Builder
	switch c.Status {
	case conformance.Passed:
		fmt.Fprintf(&text, "ok    %s  %s  %v\n", stage, c.Name, c.Took.Round(10*time.Millisecond))
	case conformance.Skipped:
		fmt.Fprintf(&text, "skip  %s  %s: %s\n", stage, c.Name, strings.Join(c.Messages, "; "))
	default:
		fmt.Fprintf(&text, "FAIL  %s  %s  %v\n", stage, c.Name, c.Took.Round(10*time.Millisecond))
		detail(&text, "      ", c)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// shown is how many messages of a check are shown.
const shown = 5

func detail(w io.Writer, indent string, c conformance.Result) {
	for i, m := range c.Messages {
		if i == shown {
			fmt.Fprintf(w, "%sand %d more\n", indent, len(c.Messages)-shown)
			break
		}
		fmt.Fprintf(w, "%s%s\n", indent, strings.ReplaceAll(m, "\n", "\n"+indent))
	}
	fmt.Fprintf(w, "%swhy:   %s\n%sto do: %s\n", indent, c.Why, indent, c.Fix)
	for i, line := range c.Log {
		if i == 0 {
			fmt.Fprintf(w, "%sits log:\n", indent)
		}
		fmt.Fprintf(w, "%s  %s\n", indent, line)
	}
}

// Summary writes one line on all checks.
func (r *Report) Summary(w io.Writer) error {
	all, failed, skipped := r.Count()
	_, err := fmt.Fprintf(w, "%s: %s of %s, %d failed, %d skipped\n", terminal.Line(r.Plugin+" "+r.Version),
		terminal.Plural(all, "check"), terminal.Plural(len(r.Stages), "stage"), failed, skipped)
	return err
}

// MarshalJSON implements json.Marshaler.
func (r *Report) MarshalJSON() ([]byte, error) {
	type check struct {
		Name     string             `json:"name"`
		Status   conformance.Status `json:"status"`
		Seconds  float64            `json:"seconds"`
		Messages []string           `json:"messages,omitempty"`
		Why      string             `json:"why,omitempty"`
		Fix      string             `json:"fix,omitempty"`
		Log      []string           `json:"log,omitempty"`
	}
	type stage struct {
		Stage  string  `json:"stage"`
		Checks []check `json:"checks"`
	}
	out := struct {
		Plugin  string  `json:"plugin"`
		Version string  `json:"version"`
		Failed  int     `json:"failed"`
		Stages  []stage `json:"stages"`
	}{Plugin: r.Plugin, Version: r.Version}
	_, out.Failed, _ = r.Count()
	for _, s := range r.Stages {
		checks := make([]check, len(s.Results))
		for i, c := range s.Results {
			checks[i] = check{c.Name, c.Status, c.Took.Seconds(), c.Messages, c.Why, c.Fix, c.Log}
		}
		out.Stages = append(out.Stages, stage{s.Name, checks})
	}
	return json.Marshal(out)
}

// JUnit writes the report in the format of continuous integration servers: a suite per stage, a case per check.
func (r *Report) JUnit(w io.Writer) error {
	type message struct {
		Text string `xml:"message,attr"`
		Body string `xml:",chardata"`
	}
	type testcase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Seconds string   `xml:"time,attr"`
		Failure *message `xml:"failure"`
		Skipped *message `xml:"skipped"`
	}
	type suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	out := struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		Suites  []suite  `xml:"testsuite"`
	}{Name: r.Plugin + " " + r.Version}
	for _, s := range r.Stages {
		x := suite{Name: s.Name}
		x.Tests, x.Failures, x.Skipped = (&Report{Stages: []Stage{s}}).Count()
		for _, c := range s.Results {
			t := testcase{Class: s.Name, Name: c.Name, Seconds: fmt.Sprintf("%.3f", c.Took.Seconds())}
			switch c.Status {
			case conformance.Failed:
				var body strings.Builder
				detail(&body, "", c)
				t.Failure = &message{first(c.Messages), body.String()}
			case conformance.Skipped:
				t.Skipped = &message{Text: first(c.Messages)}
			}
			x.Cases = append(x.Cases, t)
		}
		out.Suites = append(out.Suites, x)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func first(messages []string) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[0]
}

// Options say what to check, and how.
type Options struct {
	Program *program.Program // nil: the built-in stages of the running binary
	Builtin []sdk.Stage      // the binary's stages
	Version string           // the binary's version
	Stage   string           // KIND/NAME of the only stage to check; empty: all
	Check   string           // name of the only check to make, or its part before a /; empty: all
	Config  Config
	Within  time.Duration // most time for any check; 0: the check's own limit
	Prompt  time.Duration // how soon a stage must stop a cancelled call; 0: 10 s

	rows int // in the check of memory; tests use fewer
}

// Run checks a plugin, and calls done with the outcome of each check of each stage. Its error says why
// no check could run.
func Run(ctx context.Context, o Options, done func(stage string, r conformance.Result)) (*Report, error) {
	dir, err := os.MkdirTemp("", "racflow-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if o.rows == 0 {
		o.rows = 10_000
	}
	offered, err := o.offers(ctx, dir)
	if err != nil {
		return nil, err
	}
	for name := range o.Config.Stages {
		if o.Stage == "" && !slices.ContainsFunc(offered.Stages, func(s sdk.Stage) bool { return nameOf(s) == name }) {
			return nil, fmt.Errorf("%s configures %s, and %s %s has no such stage; it has %s", FileName, name, offered.Name, offered.Version, names(offered.Stages))
		}
	}
	report := &Report{Plugin: offered.Name, Version: offered.Version}
	for _, s := range offered.Stages {
		if o.Stage != "" && o.Stage != nameOf(s) {
			continue
		}
		report.Stages = append(report.Stages, o.stage(ctx, dir, s, func(r conformance.Result) { done(nameOf(s), r) }))
	}
	if len(report.Stages) == 0 {
		return nil, fmt.Errorf("%s %s has no stage %s; it has %s", offered.Name, offered.Version, o.Stage, names(offered.Stages))
	}
	return report, ctx.Err()
}

func names(stages []sdk.Stage) string {
	if len(stages) == 0 {
		return "none"
	}
	var all []string
	for _, s := range stages {
		all = append(all, nameOf(s))
	}
	return strings.Join(all, ", ")
}

// offers asks the plugin for its description, with the access that the config allows.
func (o Options) offers(ctx context.Context, dir string) (sdk.Plugin, error) {
	if o.Program == nil {
		return sdk.Plugin{Name: "racflow", Version: o.Version, Stages: o.Builtin}, nil
	}
	o.Program.Allow = o.Config.Allow
	h, err := host.New(host.Options{StateDir: dir})
	if err != nil {
		return sdk.Plugin{}, err
	}
	defer h.Close()
	return h.Describe(ctx, *o.Program)
}

// stage checks one stage. If it does not start, no other check runs.
func (o Options) stage(ctx context.Context, dir string, s sdk.Stage, done func(conformance.Result)) Stage {
	out := Stage{Name: nameOf(s)}
	add := func(r conformance.Result) {
		out.Results = append(out.Results, r)
		done(r)
	}
	config, secrets, err := o.Config.of(s)
	if err != nil {
		add(conformance.Result{
			Name: starts.Name, Status: conformance.Failed, Messages: []string{err.Error()}, Why: starts.Why,
			Fix: "Write the config of this stage into " + FileName + ", or give it with --config.",
		})
		return out
	}
	v := o.subject(dir, s, config, secrets)
	conformance.Collect(ctx, dir, v.Subject, []conformance.Check{starts}, add)
	if r := out.Results; len(r) == 1 && r[0].Status == conformance.Failed {
		return out
	}
	all := slices.DeleteFunc(slices.Concat(conformance.Checks(s), v.checks()), func(c conformance.Check) bool {
		return o.Check != "" && !strings.HasPrefix(c.Name+"/", o.Check+"/")
	})
	if len(all) == 0 && o.Check != starts.Name {
		add(conformance.Result{
			Name: o.Check, Status: conformance.Failed, Messages: []string{"there is no such check of this kind of stage"},
			Why: "Only checks that were made can pass.", Fix: "Take a name from a report on all checks.",
		})
	}
	conformance.Collect(ctx, dir, v.Subject, all, add)
	if o.Check != "" {
		return out
	}
	for _, path := range v.Options.Unmet() {
		add(conformance.Result{
			Name: path, Status: conformance.Failed, Messages: []string{"it is left out, but there is no such check"},
			Why: "A check that is left out by a wrong name is made all the same.", Fix: "Correct or remove the name below \"without\".",
		})
	}
	return out
}

// subject returns a stage configured by these options.
func (o Options) subject(dir string, s sdk.Stage, config []byte, secrets []string) *subject {
	settings := conformance.NewOptions()
	settings.Within, settings.DenseOnly = o.Within, o.Config.DenseOnly
	if o.Prompt > 0 {
		settings.Promptly = o.Prompt
	}
	for at, reason := range o.Config.Without {
		if stage, check, _ := strings.Cut(at, ": "); stage == nameOf(s) {
			settings.Without[check] = reason
		}
	}
	v := &subject{program: o.Program, dir: dir, secrets: secrets, rows: o.rows, running: map[*conformance.Process]*running{}}
	v.Subject = &conformance.Subject{Stage: s, Config: string(config), Start: v.start, Options: settings}
	return v
}
