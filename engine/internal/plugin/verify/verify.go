package verify

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/terminal/junit"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// Report is the outcome of all checks of a plugin.
type Report struct {
	Plugin  string  `json:"plugin"`
	Version string  `json:"version"`
	Failed  int     `json:"failed"` // checks
	Stages  []Stage `json:"stages"`
}

// Stage is the outcome of the checks of one stage.
type Stage struct {
	Name    string               `json:"stage"` // KIND/NAME
	Results []conformance.Result `json:"checks"`
}

// Line writes the outcome of one check for people, with the reason and advice if it failed.
func Line(w io.Writer, stage string, c conformance.Result) error {
	var text strings.Builder
	took := time.Duration(c.Seconds * float64(time.Second)).Round(10 * time.Millisecond)
	switch c.Status {
	case conformance.Passed:
		fmt.Fprintf(&text, "ok    %s  %s  %v\n", stage, c.Name, took)
	case conformance.Skipped:
		fmt.Fprintf(&text, "skip  %s  %s: %s\n", stage, c.Name, strings.Join(c.Messages, "; "))
	default:
		fmt.Fprintf(&text, "FAIL  %s  %s  %v\n", stage, c.Name, took)
		detail(&text, "      ", c)
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// shown limits how many messages of a check are shown.
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

// Summary writes one line about all checks.
func (r *Report) Summary(w io.Writer) error {
	all, skipped := 0, 0
	for _, s := range r.Stages {
		all += len(s.Results)
		for _, c := range s.Results {
			if c.Status == conformance.Skipped {
				skipped++
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s: %s of %s, %d failed, %d skipped\n", terminal.Line(r.Plugin+" "+r.Version),
		terminal.Plural(all, "check"), terminal.Plural(len(r.Stages), "stage"), r.Failed, skipped)
	return err
}

// JUnit writes the report in the format of continuous integration servers: a suite per stage, a case per check.
func (r *Report) JUnit(w io.Writer) error {
	var suites []junit.Suite
	for _, s := range r.Stages {
		suite := junit.Suite{Name: s.Name}
		for _, c := range s.Results {
			one := junit.Case{Class: s.Name, Name: c.Name, Seconds: c.Seconds}
			message := ""
			if len(c.Messages) > 0 {
				message = c.Messages[0]
			}
			switch c.Status {
			case conformance.Failed:
				var body strings.Builder
				detail(&body, "", c)
				one.Failure = &junit.Failure{Message: message, Type: "check", Text: body.String()}
			case conformance.Skipped:
				one.Skipped = &junit.Skipped{Message: message}
			}
			suite.Cases = append(suite.Cases, one)
		}
		suites = append(suites, suite)
	}
	return junit.Write(w, suites)
}

// Options say what to check, and how.
type Options struct {
	Program *program.Program // nil: the built-in stages of the running binary
	Builtin []sdk.Stage      // the binary's stages
	Version string           // the binary's version
	Stage   string           // KIND/NAME of the only stage to check; empty: all
	Check   string           // name of the only check to make, or the part of the name before a slash; empty: all
	Config  Config
	Within  time.Duration // time limit for every check; 0: the check's own limit

	rows int // rows in the check of memory; tests use fewer
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
	names := make([]string, len(offered.Stages))
	for i, s := range offered.Stages {
		names[i] = nameOf(s)
	}
	has := cmp.Or(strings.Join(names, ", "), "none")
	for name := range o.Config.Stages {
		if o.Stage == "" && !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s configures %s, and %s %s has no such stage; it has %s", FileName, name, offered.Name, offered.Version, has)
		}
	}
	report := &Report{Plugin: offered.Name, Version: offered.Version}
	for i, s := range offered.Stages {
		if o.Stage != "" && o.Stage != names[i] {
			continue
		}
		out := Stage{Name: names[i]}
		err := o.stage(ctx, dir, s, func(r conformance.Result) {
			if r.Status == conformance.Failed {
				report.Failed++
			}
			out.Results = append(out.Results, r)
			done(out.Name, r)
		})
		if err != nil {
			return nil, err
		}
		report.Stages = append(report.Stages, out)
	}
	if len(report.Stages) == 0 {
		return nil, fmt.Errorf("%s %s has no stage %s; it has %s", offered.Name, offered.Version, o.Stage, has)
	}
	return report, ctx.Err()
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
func (o Options) stage(ctx context.Context, dir string, s sdk.Stage, done func(conformance.Result)) error {
	first := starts
	config, secrets, err := o.Config.configOf(s)
	if err != nil {
		first.Run = func(*conformance.T, *conformance.Subject) error { return err }
		first.Fix = "Write the config of this stage into " + FileName + ", or give it with --config."
	}
	v := o.subject(dir, s, config, secrets)
	started := first.On(ctx, dir, v.Subject)
	if done(started); started.Status == conformance.Failed {
		return nil
	}
	all := slices.DeleteFunc(slices.Concat(conformance.Checks(s), v.checks()), func(c conformance.Check) bool {
		return o.Check != "" && !strings.HasPrefix(c.Name+"/", o.Check+"/")
	})
	if len(all) == 0 && o.Check != starts.Name {
		done(conformance.Result{
			Name: o.Check, Status: conformance.Failed, Messages: []string{"there is no such check of this kind of stage"},
			Why: "Only checks that were made can pass.", Fix: "Take a name from a report on all checks.",
		})
	}
	for _, c := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done(c.On(ctx, dir, v.Subject))
	}
	if o.Check != "" {
		return nil
	}
	for _, path := range v.Options.Unmet() {
		done(conformance.Result{
			Name: path, Status: conformance.Failed, Messages: []string{"it is left out, but there is no such check"},
			Why: "A check that is left out by a wrong name is made all the same.", Fix: "Correct or remove the name below \"without\".",
		})
	}
	return nil
}

// subject returns a stage configured by these options.
func (o Options) subject(dir string, s sdk.Stage, config []byte, secrets []string) *subject {
	settings := conformance.NewOptions()
	settings.Within, settings.DenseOnly = o.Within, o.Config.DenseOnly
	for at, reason := range o.Config.Without {
		if stage, check, _ := strings.Cut(at, ": "); stage == nameOf(s) {
			settings.Without[check] = reason
		}
	}
	v := &subject{program: o.Program, dir: dir, secrets: secrets, rows: o.rows}
	v.Subject = &conformance.Subject{Stage: s, Config: string(config), Start: v.start, Options: settings}
	return v
}
