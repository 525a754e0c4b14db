package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// debugging prints the process id for a debugger, and waits until one is attached or, at a terminal,
// until Enter is pressed.
type debugging struct {
	print    func(format string, args ...any)
	attached func(ctx context.Context, pid int) error
	keys     io.Reader // the terminal; nil: there is none

	once  sync.Once
	enter chan struct{}
}

func (d *debugging) wait(ctx context.Context, stage string, pid int) error {
	or := ""
	if d.keys != nil {
		or = ", or press Enter to go on without"
		d.once.Do(d.listen)
	}
	d.print("%s is process %d, without confinement and time limits; attach a debugger (dlv attach %[2]d, gdb -p %[2]d)%s", stage, pid, or)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan error, 1)
	go func() { seen <- d.attached(ctx, pid) }()
	select {
	case err := <-seen:
		if err == nil {
			d.print("a debugger is attached to %s", stage)
		}
		return err
	case <-d.enter: // nil: there is no terminal
		return nil
	}
}

// listen reads the terminal as long as the command runs: a read cannot be taken back.
func (d *debugging) listen() {
	d.enter = make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(d.keys); lines.Scan(); {
			d.enter <- struct{}{}
		}
	}()
}

// debuggingAt uses the command's own terminal, unless the terminal is the input.
func debuggingAt(print func(string, ...any), stdin io.Reader) func(context.Context, string, int) error {
	d := &debugging{print: print, attached: workspace.DebuggerAttached}
	if isTerminal(stdin) {
		d.keys = stdin
	}
	return d.wait
}

// stateDir is the state folder unless a flag names another.
const stateDir = workspace.DefaultState

// fileFlags are the flags of verbs that load a pipeline file: flags of all such verbs, and of those
// that take items or call services.
type fileFlags struct {
	vars, varFiles []string
	set            []string // arguments of blocks
	pipeline       string
	state          string
	plugins        []string

	input                     string
	limit                     int
	columns, knowledgeColumns []string

	offline, refresh bool
	budget           pipeline.Budget

	trust *trusting // nil: the verb has no flag for it

	watched   bool // it registers the telemetry flags
	telemetry telemetryFlags

	more workspace.Options // options that the verb sets in addition to its flags
}

func (f *fileFlags) register(c *cobra.Command) {
	section(c, "The file", f.registerFile)
}

func (f *fileFlags) registerFile(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable of the file: `NAME=VALUE` (may be repeated)")
	c.Flags().StringArrayVar(&f.varFiles, "var-file", nil, "read variables from an HCL `FILE` (may be repeated)")
	c.Flags().StringArrayVar(&f.set, "set", nil, "set an argument of a block: STAGE.ARGUMENT=VALUE, or with a BLOCK before it, such as `model.llm.batch=true` or embed.docs.model=NAME (may be repeated)")
	c.Flags().StringArrayVar(&f.columns, "column", nil, "read the text, label, id or gold of the input's rows from a column: `text=NAME` (may be repeated)")
	c.Flags().StringArrayVar(&f.knowledgeColumns, "knowledge-column", nil, "read the text, label, id or context of the knowledge's rows from a column: `text=NAME` (may be repeated)")
	c.Flags().StringVar(&f.pipeline, "pipeline", "", "use the pipeline `NAME` where the file holds several")
	c.Flags().StringVar(&f.state, "state", stateDir, "`DIR` keeps knowledge and runs")
	f.trust = newTrusting(c)
	f.registerPlugins(c)
}

func (f *fileFlags) registerPlugins(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.plugins, "plugins", nil, "use the plugins in `DIR`, which are being developed, whatever the file has locked (may be repeated)")
}

// registerInput registers the flags that select the items to work on.
func (f *fileFlags) registerInput(c *cobra.Command) {
	section(c, "The input", func(c *cobra.Command) {
		c.Flags().StringVar(&f.input, "input", "", "read items from `FILE` (tsv, csv, jsonl, json, packed or not, parquet, xlsx; a glob of them, or - for standard input) in place of the pipeline's input")
		c.Flags().IntVar(&f.limit, "limit", 0, "stop after `N` items")
	})
}

// registerPart registers the flags that select a part of the input.
func (f *fileFlags) registerPart(c *cobra.Command) {
	section(c, "The input", func(c *cobra.Command) {
		c.Flags().TextVar(&f.more.Share, "part", journal.Share{}, "answer only the `I/N`th of N parts of the input, such as 2/3: racflow runs merge puts the runs of all parts together")
		c.Flags().BoolVar(&f.more.WholeLimits, "whole-limits", false, "with --part, leave limits and budgets as they are; otherwise they are divided by N")
	})
}

// registerCalls registers the flags of verbs whose stages call services.
func (f *fileFlags) registerCalls(c *cobra.Command) {
	section(c, "Calls of models and other services", func(c *cobra.Command) {
		c.Flags().BoolVar(&f.offline, "offline", false, "answer from the cache alone: call no model")
		c.Flags().BoolVar(&f.refresh, "refresh", false, "ask models again for what the cache holds, and replace it")
		c.Flags().Var((*money)(&f.budget.Cost), "max-cost", "stop before calls cost more than `MONEY`, in place of the pipeline's max_cost; each stage that calls needs a price, and calls of which nobody knows what they take at most may go over it")
		c.Flags().Var((*tokens)(&f.budget.Tokens), "max-tokens", "stop before calls take more than `N` tokens, in place of the pipeline's max_tokens; the same may go over it")
		c.MarkFlagsMutuallyExclusive("offline", "refresh")
		c.Flags().StringVar(&f.more.Debug, "debug", "", "start a `STAGE`, such as sample.mine or embed.intents, without confinement and time limits, and wait until a debugger is attached to it or Enter is pressed")
	})
}

// registerTelemetry registers the flags for traces and metrics.
func (f *fileFlags) registerTelemetry(c *cobra.Command) {
	f.watched = true
	f.telemetry.register(c)
}

// registerSpend registers the flags that spend calls or money on the least sure items.
func (f *fileFlags) registerSpend(c *cobra.Command) {
	section(c, "Calls of models and other services", func(c *cobra.Command) {
		c.Flags().Var(wish[int]{&f.more.Spend.Calls, strconv.Atoi, "a whole number"}, "calls", "make `N` calls of voters' services, about the items whose answers are least sure")
		c.Flags().Var(wish[float64]{&f.more.Spend.Money, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }, "an amount"}, "budget", "spend `MONEY` on voters, by the prices in the file, on the items whose answers are least sure")
		c.MarkFlagsMutuallyExclusive("calls", "budget")
	})
}

// wish is the value of an optional flag that may also be 0.
type wish[T int | float64] struct {
	to    **T
	parse func(string) (T, error)
	is    string
}

func (w wish[T]) Type() string { return "number" }

func (w wish[T]) String() string {
	if w.to == nil || *w.to == nil {
		return ""
	}
	return fmt.Sprint(**w.to)
}

func (w wish[T]) Set(text string) error {
	v, err := w.parse(text)
	if err != nil || !(v >= 0) || math.IsInf(float64(v), 0) {
		return fmt.Errorf("it must be %s, at least 0", w.is)
	}
	*w.to = &v
	return nil
}

// options converts the flags into the engine's options.
func (f *fileFlags) options(stdin io.Reader) (workspace.Options, error) {
	o := f.more
	o.Vars = map[string]string{}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return o, fmt.Errorf("-var %s: write NAME=VALUE", v)
		}
		o.Vars[name] = value
	}
	o.Set = nil
	for _, s := range f.set {
		target, value, ok := strings.Cut(s, "=")
		if !ok {
			return o, fmt.Errorf("-set %s: write STAGE.ARGUMENT=VALUE", s)
		}
		o.Set = append(o.Set, pipeline.Override{Target: target, Value: value})
	}
	o.Set = append(o.Set, f.more.Set...) // the last value of a target wins
	var err error
	if o.Columns, err = columnsOf("--column", f.columns, "gold"); err != nil {
		return o, err
	}
	if o.KnowledgeColumns, err = columnsOf("--knowledge-column", f.knowledgeColumns, "context"); err != nil {
		return o, err
	}
	o.Builtin, o.Plugins, o.State, o.VarFiles, o.Pipeline = builtin, f.plugins, f.state, f.varFiles, f.pipeline
	o.Input, o.Limit, o.Stdin = f.input, f.limit, stdin
	o.Services = &workspace.Services{Budget: f.budget}
	decides := f.trust
	if decides == nil {
		decides = newTrusting(nil)
	}
	o.Trust = func(r workspace.TrustRequest) error { return decides.decide(r, f.input != "-") }
	o.MergeLabels = func(question string) bool { return decides.mergeLabels(question, f.input != "-") }
	switch {
	case f.offline:
		o.Services.Mode = governor.Offline
	case f.refresh:
		o.Services.Mode = governor.Refresh
	}
	return o, nil
}

// columnsOf reads the columns that a flag names; own is an additional meaning that it accepts.
func columnsOf(flag string, given []string, own string) (map[string]string, error) {
	columns := map[string]string{}
	for _, c := range given {
		means, column, ok := strings.Cut(c, "=")
		if !ok || column == "" {
			return nil, fmt.Errorf("%s %s: write text=NAME", flag, c)
		}
		if !slices.Contains([]string{"id", "text", "label", own}, means) {
			return nil, fmt.Errorf("%s %s: what its rows have are text, label, id and %s; write one of them before the = (--column is of the input, --knowledge-column of the knowledge)", flag, c, own)
		}
		columns[means] = column
	}
	return columns, nil
}

// oneFile checks the arguments of a verb that works on one pipeline file. Without an argument, the
// verb works on the file of the working directory.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return takeFile(c)
	}
	if len(args) != 1 {
		return fmt.Errorf("name one pipeline file, such as: %s pipelines/intent.hcl", c.CommandPath())
	}
	return nil
}

// words refuses any other number of arguments, with advice.
func words(number int, advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != number {
			return errors.New(advice)
		}
		return nil
	}
}

// singleDash accepts long flags with one dash, as other tools that read HCL do: -var, -var-file.
func singleDash(root *cobra.Command, args []string) []string {
	long := map[string]bool{}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { long[f.Name] = true })
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	out := slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		if len(name) > 2 && name[0] == '-' && (long[name[1:]] || mistyped(name[1:])) {
			out[i] = "-" + arg
		}
	}
	return out
}

// mistyped reports whether a word after one dash was meant as a long flag. It is neither a
// combination of -q, -v and -h, nor -oFILE, nor a number. The error then names the nearest long flag.
func mistyped(word string) bool {
	return unicode.IsLetter(rune(word[0])) && word[0] != 'o' && strings.Trim(word, "qvh") != ""
}

// keep is the value of the flag that selects the items for which a journal records what was seen.
type keep journal.Keep

func (k *keep) Type() string   { return "which" }
func (k *keep) String() string { return string(*k) }

func (k *keep) Set(text string) error {
	if which := journal.Keep(text); which != journal.KeepNotable && which != journal.KeepAll {
		return fmt.Errorf("it must be %s or %s", journal.KeepNotable, journal.KeepAll)
	}
	*k = keep(text)
	return nil
}

// money and tokens are the values of flags that set a bound. They refuse 0, which would mean no
// bound.
type (
	money  float64
	tokens int64
)

var errNoBound = errors.New("it must be more than 0; leave it out to set no bound")

func (m *money) Type() string   { return "float" }
func (m *money) String() string { return strconv.FormatFloat(float64(*m), 'g', -1, 64) }

func (m *money) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return errNoBound
	}
	*m = money(v)
	return nil
}

func (t *tokens) Type() string   { return "int" }
func (t *tokens) String() string { return strconv.FormatInt(int64(*t), 10) }

func (t *tokens) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v <= 0 {
		return fmt.Errorf("%w; it is a whole number", errNoBound)
	}
	*t = tokens(v)
	return nil
}

// telemetryFlags holds the flags for traces and metrics.
type telemetryFlags struct {
	traces  telemetry.Options
	metrics string
}

func (f *telemetryFlags) register(c *cobra.Command) {
	section(c, "Watching", func(c *cobra.Command) {
		registerTraces(c, &f.traces)
		c.Flags().StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics at /metrics of `ADDR` meanwhile: a port, or a loopback address with one")
	})
}

// registerTraces registers the flags that say where traces go.
func registerTraces(c *cobra.Command, o *telemetry.Options) {
	c.Flags().StringVar(&o.TraceFile, "trace", "", "add traces to `FILE`, as lines of OTLP/JSON; OTEL_EXPORTER_OTLP_ENDPOINT in the environment names a collector")
	c.Flags().BoolVar(&o.Texts, "trace-texts", false, "have texts of items, answers and messages of errors in traces, too")
}

// exportTime is the time that the last spans of a command may take to reach a collector.
const exportTime = 5 * time.Second

// endTelemetry closes t once the last spans are exported, even if ctx has ended.
func endTelemetry(ctx context.Context, t *telemetry.Telemetry, log *slog.Logger) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTime)
	defer cancel()
	if err := t.Close(within); err != nil {
		log.Warn("the last spans may be lost", "error", err)
	}
}

// watch starts traces and metrics for the command c, as flags and environment say. Call ended at the
// command's end, with its error.
func (f *telemetryFlags) watch(c *cobra.Command, o *workspace.Options, print func(string, ...any)) (ended func(error), err error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f.traces.Version, f.traces.Log = workspace.Version(), log
	t, err := telemetry.New(c.Context(), f.traces)
	if err != nil {
		return nil, err
	}
	var l net.Listener
	switch {
	case f.metrics != "":
		if l, err = telemetry.Listen(f.metrics); err != nil {
			return nil, fmt.Errorf("--metrics: %w", err)
		}
		go t.Serve(l, log)
		print("metrics: http://%s/metrics", l.Addr())
	case !t.Traces():
		return func(error) {}, nil
	}
	o.Observe = t
	ctx, end := t.Command(c.Context(), c.CommandPath())
	c.SetContext(ctx)
	return func(err error) {
		end(err)
		endTelemetry(ctx, t, log)
		if l != nil {
			_ = l.Close()
		}
	}, nil
}
