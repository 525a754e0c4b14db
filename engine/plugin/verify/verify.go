package verify

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// Options say what to check, and how.
type Options struct {
	Program *program.Program // nil: the built-in stages of the running binary
	Builtin []sdk.Stage      // what it offers then
	Version string           // its version
	Stage   string           // KIND/NAME of the only stage to check; empty: all
	Check   string           // the name of the only check to make, or what comes before a / in its name; empty: all
	Config  Config
	Within  time.Duration // how long any check may take; 0: as long as the check says
	Prompt  time.Duration // how soon a stage has to stop what is cancelled; 0: 10 s

	rows int // of the check of memory; tests ask for fewer
}

// Run checks a plugin, and calls done with the outcome of each check of each stage. Its error says why
// there was nothing to check.
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

// offers is what the plugin says of itself, now that it may reach what the config allows.
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

// stage checks one stage. Where it does not start, nothing else is asked of it.
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

// subject is a stage as these options want it checked.
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
