package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// world is a random configuration with its data and its server.
type world struct {
	t       *testing.T
	dir     string
	file    *pipeline.File
	server  *modelserver.Server
	mu      sync.Mutex
	closers []io.Closer        // for stages of a run
	cache   governor.Responses // nil: no answer is cached
	limited bool               // somebody wrote a limit of an answer
	about   string
}

// How answers are scripted. The label is drawn from the allowed ones; one answer in twenty is not
// accepted. Reasons have 15 to 45 words, but no more than some 300 tokens, since limits cut longer
// answers, which are then requested again. Thoughts have half to one and a half times the model's
// average, which is 50 to 850 tokens.
const (
	refusedShare              = 0.05
	leastReasons, mostReasons = 15, 45
	reasonTokens              = 300
	leastThoughts             = 50
	mostThoughts              = 850
)

// randomWorld draws a configuration.
func randomWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	language, codec := languages[r.IntN(len(languages))], codecs()[r.IntN(len(codecs()))]
	words := strings.Fields(sentences[language])
	text := func(least, most int) string {
		var some []string
		for range least + r.IntN(most-least+1) {
			some = append(some, words[r.IntN(len(words))])
		}
		return strings.Join(some, " ")
	}
	var labels []string
	for i := range 2 + r.IntN(40) {
		labels = append(labels, fmt.Sprintf("%s %d", text(1, 1), i))
	}
	rows := func(n int, labelled bool) string {
		lines := []string{"text\tlabel"}
		for i := range n {
			line := fmt.Sprintf("%s %d\t", text(4, 24), i)
			if labelled {
				line += labels[i%len(labels)]
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n") + "\n"
	}
	thinks := []modelserver.Thinking{modelserver.NotAtAll, modelserver.NotAtAll, modelserver.InAField, modelserver.Silently}[r.IntN(4)]
	thoughts := leastThoughts + r.IntN(mostThoughts-leastThoughts)
	// script gives the same for the same question, whenever it comes.
	script := func(a modelserver.Ask, choice int) *rand.Rand {
		h := fnv.New64a()
		_, _ = h.Write([]byte(a.Whole())) // a hash takes everything
		return rand.New(rand.NewPCG(seed+uint64(choice), h.Sum64()))
	}
	say := func(r *rand.Rand, enough func(string) bool) string {
		said := words[r.IntN(len(words))]
		for !enough(said) {
			said += " " + words[r.IntN(len(words))]
		}
		return said
	}
	each := codec.count(strings.Join(words, " "))/len(words) + 1 // tokens of a word
	think := func(r *rand.Rand, tokens int) string {
		n := 0
		return say(r, func(string) bool { n += each; return n >= tokens })
	}
	chat, reasoning := r.IntN(2) == 0, r.IntN(2) == 0
	server := modelserver.Serve(t, modelserver.Options{
		Count: codec.count, Template: 3 + r.IntN(40), Frame: 3 + r.IntN(4), Thinks: thinks, IgnoreN: r.IntN(4) == 0, Thoughts: think(r, thoughts),
		ThoughtsOf: func(a modelserver.Ask, choice int) string {
			r := script(a, choice)
			return think(r, thoughts/2+r.IntN(thoughts))
		},
		Answer: func(a modelserver.Ask, choice int) string {
			r := script(a, choice)
			allowed := labels
			if a.Labels != nil {
				allowed = a.Labels
			}
			label := allowed[r.IntN(len(allowed))]
			if r.Float64() < refusedShare {
				label = "nothing of that"
			}
			switch {
			case chat && reasoning:
				n, reasons := 0, min(leastReasons+r.IntN(mostReasons-leastReasons), max(1, reasonTokens/each))
				return fmt.Sprintf(`{"reasoning": %q, "label": %q}`, say(r, func(string) bool { n++; return n >= reasons }), label)
			case chat:
				return fmt.Sprintf(`{"label": %q}`, label)
			}
			return label
		},
	})
	w := &world{t: t, limited: r.IntN(2) == 0}
	prompt := fmt.Sprintf("  prompt \"p\" {\n    use = \"completion\"\n    config {\n      k = %d\n      random = %d\n      redraw = %q\n    }\n  }\n", r.IntN(20), r.IntN(20), []string{"item", "sample", "run"}[r.IntN(3)])
	if chat {
		prompt = fmt.Sprintf("  prompt \"p\" {\n    use = \"chat\"\n    config {\n      shots = %d\n      labels = %q\n      reasoning = %t\n    }\n  }\n", r.IntN(8), []string{"neighbours", "all"}[r.IntN(2)], reasoning)
	}
	n, resamples, when := 1+r.IntN(6), r.IntN(3), ""
	if r.IntN(3) == 0 {
		when = fmt.Sprintf("    when = \"margin < %.2f\"\n", 0.1+0.6*r.Float64())
	}
	most := 0
	if w.limited {
		most = 4000
	}
	structured := []string{"auto", "auto", "off", "json_schema"}[r.IntN(4)]
	pipelineFile := fmt.Sprintf(`
knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from = knowledge.k
    top_k = 20
  }
  sample "near" { use = "neighbours" }
%s  sample "llm" {
    use = "openai"
    n = %d
    resamples = %d
    accept = "answer in labels"
%s    price {
      input  = 1
      output = 5
    }
    config {
      base_url   = %q
      model      = "any"
      structured = %q
      max_tokens = %d
    }
  }
  elect "e" { use = "soft" }
}
`, prompt, n, resamples, when, server.URL, structured, most)
	w.dir = runtest.Folder(t, map[string]string{
		runtest.File: pipelineFile, "train.tsv": rows(len(labels)+r.IntN(60), true), "items.tsv": rows(24, false), "first.tsv": rows(16, false),
	})
	w.file = runtest.Load(t, enginetest.Catalog(builtin.Stages()), w.dir)
	w.about = fmt.Sprintf("%s, %s, thinks %d (%d tokens), n %d, resamples %d, structured %s, %s%s", language, codec.GetName(), thinks, thoughts, n, resamples, structured, strings.Fields(prompt)[5], when)
	return w
}

// launch opens stages in memory; stages that call services get a host.
func (w *world) launch(c *governor.Governor) stage.Launch {
	inMemory := runtest.Launch(w.t, filepath.Join(w.dir, "state"))
	return func(ctx context.Context, l stage.LaunchRequest) (any, error) {
		if !l.Stage.Info.Network {
			return inMemory(ctx, l)
		}
		opened, err := w.open(ctx, l.Stage, c)
		if closer, ok := opened.(io.Closer); ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.closers = append(w.closers, closer)
		}
		return opened, err
	}
}

func (w *world) open(ctx context.Context, s *pipeline.Stage, c *governor.Governor) (any, error) {
	host := c.Stage(governor.Stage{Name: s.Block + "." + s.Name, Kind: s.Kind, Use: s.Use, Price: s.Price})
	return s.Info.Open(ctx, sdk.Setup{Block: s.Name, Samples: s.N, StateDir: filepath.Join(w.dir, "stages", s.Name), Host: host, Log: slog.New(slog.DiscardHandler)}, s.Config.Open)
}

func (w *world) profiles() *governor.Profiles {
	return governor.NewProfiles(filepath.Join(w.dir, "profiles"))
}

// governor returns the governor of a run or a plan, with the profiles that were found earlier.
func (w *world) governor(mode governor.Mode) *governor.Governor {
	return governor.New(w.t.Context(), governor.Options{Profiles: w.profiles(), Cache: w.cache, Mode: mode, Log: slog.New(slog.DiscardHandler)})
}

// probe finds out what the model accepts, as racflow model probe does.
func (w *world) probe() {
	all := plan.Askings(w.file.Pipelines[0])
	use := func(s *pipeline.Stage, do func(any) error) {
		opened, err := w.open(w.t.Context(), s, w.governor(governor.Normal))
		if err != nil {
			w.t.Fatal(err)
		}
		if err := errors.Join(do(opened), opened.(io.Closer).Close()); err != nil {
			w.t.Fatal(err)
		}
	}
	use(all[0].Stage, func(opened any) error {
		_, err := opened.(sdk.Prober).Models()[0].Probe(w.t.Context())
		return err
	})
	found := w.planned()
	for _, a := range all {
		use(a.Single(), func(opened any) error { return found.AskOwn(w.t.Context(), a, opened) })
	}
}

// run sends the items of a file through the pipeline, and returns the counts.
func (w *world) run(input string) governor.Counts {
	c := w.governor(governor.Normal)
	ready, err := run.Open(w.t.Context(), w.file.Pipelines[0], run.Options{Launch: w.launch(c), Options: stage.Options{Pending: retry.OpenHandles(filepath.Join(w.dir, "pending"), nil)}})
	if err != nil {
		w.t.Fatal(err)
	}
	rows := w.rows(input)
	defer rows.Close() //nolint:errcheck // it was only read
	_, err = ready.Items(w.t.Context(), rows.Next, nil, runtest.Each(func(r outcome.Result) error {
		if r.Failure != nil {
			return r.Failure
		}
		return nil
	}))
	for _, closer := range w.closers {
		err = errors.Join(err, closer.Close())
	}
	if w.closers = nil; err != nil {
		w.t.Fatal(err)
	}
	return c.Snapshot().Total
}

func (w *world) rows(input string) *source.Reader {
	in := *w.file.Pipelines[0].Input
	in.Path = filepath.Join(w.dir, input)
	rows, err := in.Open(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// plan returns the forecast of the voter.
func (w *world) plan() plan.Call {
	p := w.planned()
	if p.Forecast == nil || p.Forecast.Unknown != "" || len(p.Calls()) != 1 || p.Forecast.Failed > 0 {
		w.t.Fatalf("forecast %+v", p.Forecast)
	}
	return p.Calls()[0]
}

// planned makes a plan of a run.
func (w *world) planned() *plan.Plan {
	c := w.governor(governor.Offline)
	p, err := plan.Make(w.t.Context(), w.file, w.file.Pipelines[0], plan.Options{
		Launch: w.launch(c), Stage: enginetest.Catalog(builtin.Stages()).Stage, Forecaster: forecaster[sdk.Forecaster](w, c), Enricher: forecaster[sdk.EnrichForecaster](w, c),
		Models: func(context.Context) ([]plan.Model, error) { return nil, nil }, Fitted: filepath.Join(w.dir, "fitted"),
		Rows: func() (plan.Rows, error) { return w.rows("items.tsv"), nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// forecaster returns a function that opens a stage for a forecast.
func forecaster[T any](w *world, c *governor.Governor) func(context.Context, *pipeline.Stage) (T, error) {
	return func(ctx context.Context, s *pipeline.Stage) (asked T, err error) {
		opened, err := w.open(ctx, s, c)
		if err != nil {
			return asked, err
		}
		asked, ok := opened.(T)
		if !ok {
			return asked, errors.New("it says nothing")
		}
		return asked, nil
	}
}

// whole is the forecast for all stages that call services.
type whole struct {
	sdk.Forecast
	cost, mostCost float64
}

func (f whole) bound() string {
	if f.Unknown != "" {
		return "not known: " + f.Unknown
	}
	return fmt.Sprintf("%d in and %d out", f.Most.InputTokens, f.Most.OutputTokens)
}

// forecast sums up the plan.
func (w *world) forecast() (all whole) {
	p := w.planned()
	add := func(f sdk.Forecast, s *pipeline.Stage) {
		all.Add(f)
		all.cost += s.CallPrice().Of(f.Likely)
		all.mostCost += s.CallPrice().AtMost(f.Most)
	}
	for _, k := range p.Knowledge {
		for _, a := range k.Asks {
			add(plan.EnrichForecast(a), a.Stage)
		}
	}
	if p.Forecast.Unknown != "" {
		all.Unknown = p.Forecast.Unknown
		return all
	}
	for _, c := range p.Calls() {
		add(c.Forecast, c.Stage)
	}
	return all
}

// price returns the price of the voter's calls.
func (w *world) price() *pipeline.Price {
	for _, s := range w.file.Pipelines[0].Stages {
		if s.Info.Network {
			return s.CallPrice()
		}
	}
	return nil
}
