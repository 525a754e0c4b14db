package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/spend"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// calibrated is a pipeline whose election learns from votes: "near" is free, and "llm" calls a
// service. It has 60 examples.
type calibrated struct {
	t      *testing.T
	path   string
	o      workspace.Options
	server *httptest.Server
	asked  atomic.Int32 // requests
	fails  atomic.Int32 // one of this many requests fails; 0: none
	mu     sync.Mutex
	advice []string
}

func calibrate(t *testing.T, price, elect, more string) *calibrated {
	t.Helper()
	c := &calibrated{t: t}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, every := c.asked.Add(1), c.fails.Load(); every > 0 && n%every == 0 {
			w.Header().Set("Content-Length", "100") // the response ends early, which no client repeats
			fmt.Fprint(w, "f")
			http.NewResponseController(w).Flush() //nolint:errcheck // the client sees it
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "fruit")
	}))
	t.Cleanup(c.server.Close)
	c.path, c.o = write(t, fmt.Sprintf(knowledgeBlock+`
variable "near" { default = 2 }
pipeline "p" {
  %s
  retrieve "near" { from = knowledge.k }
  sample "near" { use = "neighbours" }
  sample "llm" {
    use     = "asker"
    when    = "margin < var.near"
    retries = 0
    batch   = 1
    price {
      %s
    }
    config { url = %q }
  }
  elect "e" {
    %s
  }
}
`, more, price, c.server.URL, elect))
	rows := "id\ttext\tlabel\n"
	for i := range 30 {
		rows += fmt.Sprintf("a%d\tred apple %[1]d\tfruit\nb%[1]d\tblue car %[1]d\tvehicle\n", i)
	}
	beside(t, c.path, "rows.tsv", rows)
	c.o.Events.Advice = func(text string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.advice = append(c.advice, text)
	}
	return c
}

// input gives the pipeline this many items.
func (c *calibrated) input(items int) *calibrated {
	c.o.Input = beside(c.t, c.path, "items.tsv", "text\n"+strings.Repeat("red apple\n", items))
	return c
}

// work runs the input through the pipeline, and returns the number of requests.
func (c *calibrated) work() (out *workspace.Outcome, requests int) {
	c.t.Helper()
	before := c.asked.Load()
	p := mustOpen(c.t, c.path, c.o)
	defer p.Close()
	out, err := p.Work(c.t.Context(), func([]outcome.Result) error { return nil }, nil)
	must.Do(c.t, err)
	return out, int(c.asked.Load() - before)
}

// answer asks the pipeline one question, and returns the number of requests.
func (c *calibrated) answer() (requests int) {
	c.t.Helper()
	before := c.asked.Load()
	p := mustOpen(c.t, c.path, c.o)
	defer p.Close()
	_, err := p.Answer(c.t.Context(), workspace.Item{Text: "red apple"})
	must.Do(c.t, err)
	return int(c.asked.Load() - before)
}

// learnt returns, for each state that an election has learned with answers of llm, how many rows have such answers. It
// checks that all rows have near's answers.
func (c *calibrated) learnt() (rows []int) {
	c.t.Helper()
	kept, err := filepath.Glob(filepath.Join(c.o.State, "fitted", "*", "*c-*-*", enginetest.WitnessFile))
	must.Do(c.t, err)
	for _, name := range kept {
		var all []enginetest.Witnessed
		raw, err := os.ReadFile(name)
		must.Do(c.t, errors.Join(err, json.Unmarshal(raw, &all)))
		with := 0
		for _, row := range all {
			if !row.HeldOut || len(row.Samples) == 0 || row.Samples[0].Voter != "near" {
				c.t.Fatalf("row %s has the samples %v", row.ID, row.Samples)
			}
			if len(row.Samples) == 2 && row.Samples[1].Voter == "llm" {
				with++
			}
		}
		rows = append(rows, with)
		if len(all) != 60 {
			c.t.Errorf("it has learnt from %d rows", len(all))
		}
	}
	return rows
}

const (
	costs   = "input = 1\noutput = 1"
	nothing = "input = 0\noutput = 0"
	witness = `use = "witness"`
)

// TestCalibrates: whether, and about how many examples, voters are asked before the first item.
func TestCalibrates(t *testing.T) {
	calls := func(n int) func(*workspace.Options) {
		return func(o *workspace.Options) { o.Spend, o.Journal = spend.Limit{Calls: &n}, true }
	}
	money := func(x float64) func(*workspace.Options) {
		return func(o *workspace.Options) { o.Spend, o.Journal = spend.Limit{Money: &x}, true }
	}
	for name, test := range map[string]struct {
		price, elect, more string
		items              int // 0: Answer asks about one item
		set                func(*workspace.Options)
		want               int
	}{
		"free":                               {nothing, witness, "", 40, nil, 40},
		"free, few items":                    {nothing, witness, "", 10, nil, 40},
		"free, fewer":                        {nothing, witness, "", 9, nil, 0},
		"free, for one question":             {nothing, witness, "", 0, nil, 0},
		"few items":                          {costs, witness, "", 399, nil, 0},
		"many items":                         {costs, witness, "", 400, nil, 40},
		"many items, of which few count":     {costs, witness, "", 400, func(o *workspace.Options) { o.Limit = 399 }, 0},
		"one question":                       {costs, witness, "", 0, nil, 0},
		"the file asks, for one question":    {costs, witness + "\ncalibrate = 5", "", 0, nil, 5},
		"the file asks for more than all":    {costs, witness + "\ncalibrate = 100", "", 2, nil, 60},
		"the file does not want it":          {nothing, witness + "\ncalibrate = 0", "", 40, nil, 0},
		"a tenth of the calls":               {costs, witness, "", 400, calls(400), 40},
		"more than a tenth of the calls":     {costs, witness, "", 400, calls(399), 0},
		"free, more than a tenth of calls":   {nothing, witness, "", 40, calls(399), 0},
		"more than a tenth of the money":     {costs, witness, "", 400, money(0.0004), 0},
		"more than a tenth of max_cost":      {costs, witness, "max_cost = 0.0004", 400, nil, 0},
		"more than a tenth of max_tokens":    {nothing, witness, "max_tokens = 1000", 40, nil, 0},
		"offline":                            {nothing, witness, "", 40, func(o *workspace.Options) { o.Services = &workspace.Services{Mode: governor.Offline} }, 0},
		"an election that learns nothing":    {nothing, `use = "soft"`, "", 40, nil, 0},
		"an election with weights":           {nothing, witness + "\nconfig { weights = { near = 1 } }", "", 40, nil, 0},
		"the file asks for all of the calls": {costs, witness + "\ncalibrate = 10", "", 20, calls(10), 10},
	} {
		t.Run(name, func(t *testing.T) {
			c := calibrate(t, test.price, test.elect, test.more)
			if test.set != nil {
				test.set(&c.o)
			}
			if test.items > 0 {
				c.input(test.items).work()
			} else {
				c.answer()
			}
			got := 0
			for _, rows := range c.learnt() {
				got += rows
			}
			if got != test.want {
				t.Errorf("it has learnt from %d rows with answers of llm, not %d", got, test.want)
			}
			says := []string{`votes of llm are not calibrated: they count by a documented prior; calibrate = 40 in elect "e" asks about 40 examples first`}
			if learns := strings.HasPrefix(test.elect, witness) && !strings.Contains(test.elect, "\n"); test.want > 0 || !learns || test.items == 0 {
				says = nil // there is nothing to report, or to calibrate
			}
			if diff := cmp.Diff(says, c.advice); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAgreesByChance: if a model agrees with the other voters no more than chance, the report of a run names it, and no
// other voter.
func TestAgreesByChance(t *testing.T) {
	for text, want := range map[string]string{
		"text\n" + strings.Repeat("red apple\nblue car\n", 10): "[sample.llm: says what the other voters say on 10 of 20 items (50 %), and would by chance on 50 %: look at its answers, or leave it out]",
		"text\n" + strings.Repeat("red apple\n", 20):           "[]",
	} {
		c := calibrate(t, costs, witness, "")
		c.o.Input = beside(t, c.path, "items.tsv", text)
		out, _ := c.work()
		must.Equal(t, "voters by chance", want, fmt.Sprint(out.Evaluation.ByChance))
	}
}

// TestCalibratedOnce: what an election learned is stored by everything that it depends on. It is found without a call
// wherever all of that is the same.
func TestCalibratedOnce(t *testing.T) {
	c := calibrate(t, costs, witness+"\ncalibrate = 6", "").input(3)
	if _, requests := c.work(); requests != 6+3 {
		t.Fatalf("%d requests", requests)
	}
	states := c.learnt()
	again := func(name string, change func(*workspace.Options), want int) {
		t.Helper()
		before := c.o
		defer func() { c.o = before }()
		if change != nil {
			change(&c.o)
		}
		if requests := c.answer(); requests != want || len(c.advice) > 0 {
			t.Errorf("%s: %d requests, not %d; advice %q", name, requests, want, c.advice)
		}
	}
	set := func(target, value string) func(*workspace.Options) {
		return func(o *workspace.Options) { o.Set = []pipeline.Override{{Target: target, Value: value}} }
	}
	again("one question", nil, 1)
	again("its own edition of the knowledge", func(o *workspace.Options) { o.Edition = true }, 1)
	again("another rule says which items are sent", func(o *workspace.Options) { o.Vars = map[string]string{"near": "0"} }, 0)
	again("another limit", set("sample.llm.workers", "1"), 1)
	if got := c.learnt(); len(got) != len(states)+1 { // the edition has its own
		t.Errorf("states: %v, before %v", got, states)
	}
	again("other answers count", set("elect.e.accept", `answer != ""`), 6+1)
	again("another number", set("elect.e.calibrate", "7"), 7+1)
	again("several answers", set("sample.llm.n", "2"), 6+1)
	beside(t, c.path, "rows.tsv", "id\ttext\tlabel\na\tred apple\tfruit\nb\tgreen pear\tfruit\nc\tblue car\tvehicle\nd\tfast train\tvehicle\n")
	again("other examples", nil, 4+1)
}

// TestNotCalibrated: if a service fails on more than a tenth of the examples, its answers are discarded. The run says
// so, and continues with a model that is not calibrated.
func TestNotCalibrated(t *testing.T) {
	for _, onError := range []string{"fail", "skip"} {
		for every, want := range map[int32]string{9: "", 6: "since 3 of 20 examples have no answer: sample.llm: "} {
			t.Run(fmt.Sprint(onError, every), func(t *testing.T) {
				c := calibrate(t, costs, witness+"\ncalibrate = 20", "").input(2)
				c.fails.Store(every)
				c.o.Set = []pipeline.Override{{Target: "sample.llm.on_error", Value: fmt.Sprintf("%q", onError)}}
				if out, requests := c.work(); out.Items != 2 || out.Failed > 0 || requests != 20+2 {
					t.Errorf("%d items, %d failed, %d requests", out.Items, out.Failed, requests)
				}
				if want == "" {
					if got := c.learnt(); len(got) != 1 || got[0] != 18 || len(c.advice) > 0 {
						t.Errorf("it has learnt from %v rows; advice %q", got, c.advice)
					}
					return
				}
				want := "votes of llm are not calibrated: they count by a documented prior, " + want
				if got := c.learnt(); len(got) > 0 || len(c.advice) != 1 || !strings.HasPrefix(c.advice[0], want) {
					t.Errorf("it has learnt from %v rows; advice %q", got, c.advice)
				}
			})
		}
	}
}

// TestCalibratingIsPaid: the cost of examples counts against the limit of a run, also of a resumed run.
func TestCalibratingIsPaid(t *testing.T) {
	c := calibrate(t, costs, witness+"\ncalibrate = 4", "").input(20)
	most := 10
	c.o.Spend, c.o.Journal = spend.Limit{Calls: &most}, true
	out, requests := c.work()
	if requests != most || out.Spent.Calls != most || out.Spent.Asked != most-4 {
		t.Errorf("%d requests; %+v", requests, out.Spent)
	}
	if want := float64(most) * 1010 / 1e6; out.Spent.Cost < want-1e-9 || out.Spent.Cost > want+1e-9 {
		t.Errorf("cost %v, want %v", out.Spent.Cost, want)
	}
	c.o.Resume, c.o.Spend = out.Run, spend.Limit{}
	if out, requests = c.work(); requests != 0 || out.Spent.Calls != most {
		t.Errorf("resumed: %d requests; %+v", requests, out.Spent)
	}

	c = calibrate(t, costs, witness+"\ncalibrate = 11", "").input(20)
	c.o.Spend, c.o.Journal = spend.Limit{Calls: &most}, true
	want := "votes of llm are not calibrated: they count by a documented prior, since asking about the examples may take 11 of 10 calls: a limit does not allow it"
	if out, requests = c.work(); requests != most || out.Spent.Asked != most || len(c.advice) != 1 || c.advice[0] != want {
		t.Errorf("%d requests; %+v; advice %q", requests, out.Spent, c.advice)
	}
}

// TestCalibratedRunIsResumed: a resumed run uses what its election had learned when the run began.
func TestCalibratedRunIsResumed(t *testing.T) {
	begin := func(elect string) (c *calibrated, run string) {
		c = calibrate(t, costs, elect, "").input(3)
		c.o.Journal = true
		c.fails.Store(1)
		out, _ := c.work()
		if c.fails.Store(0); out.Failed+out.Left+out.Provisional != 3 {
			t.Fatalf("%+v", out.Totals)
		}
		return c, out.Run
	}
	c, run := begin(witness)
	c.o.Set = []pipeline.Override{{Target: "elect.e.calibrate", Value: "5"}}
	if requests := c.answer(); requests != 5+1 {
		t.Fatalf("calibrating takes %d requests", requests)
	}
	for _, set := range [][]pipeline.Override{c.o.Set, nil} {
		c.o.Set, c.o.Resume, c.advice = set, run, nil
		out, requests := c.work()
		if out.Failed > 0 || len(c.advice) != 1 || requests != 3 && set != nil || requests > 3 {
			t.Errorf("resumed with %v: %+v, %d requests; advice %q", set, out.Totals, requests, c.advice)
		}
	}
}

// TestCalibratingAlone: an election without free voters learns from the examples that were asked
// about.
func TestCalibratingAlone(t *testing.T) {
	c := calibrate(t, costs, witness+"\ncalibrate = 5", "")
	c.o.Set = []pipeline.Override{{Target: "sample.near.enabled", Value: "false"}}
	if requests := c.answer(); requests != 5+1 {
		t.Errorf("%d requests", requests)
	}
	kept, err := filepath.Glob(filepath.Join(c.o.State, "fitted", "*", "*c-*-*", enginetest.WitnessFile))
	must.Do(t, err)
	if len(kept) != 1 {
		t.Fatalf("states %q", kept)
	}
	var all []enginetest.Witnessed
	raw, err := os.ReadFile(kept[0])
	must.Do(t, errors.Join(err, json.Unmarshal(raw, &all)))
	for _, row := range all {
		if len(row.Samples) != 1 || row.Samples[0].Voter != "llm" {
			t.Errorf("row %s has the samples %v", row.ID, row.Samples)
		}
	}
	if len(all) != 5 {
		t.Errorf("it has learnt from %d rows", len(all))
	}
}

// TestCalibratingIsInterrupted: an interrupt ends it immediately, and nothing is stored.
func TestCalibratingIsInterrupted(t *testing.T) {
	c := calibrate(t, costs, witness+"\ncalibrate = 30", "").input(3)
	ctx, interrupt := context.WithCancelCause(t.Context())
	done := errors.New("enough")
	c.o.Events.Progress = func(s workspace.Progress) {
		if s.Doing == "calibrating" && s.Name == "elect.e" && s.Total == 30 {
			interrupt(done)
		}
	}
	p, err := workspace.Open(ctx, c.path, c.o)
	must.Do(t, err)
	defer p.Close()
	if out, err := p.Work(ctx, func([]outcome.Result) error { return nil }, nil); !errors.Is(err, context.Canceled) || out != nil {
		t.Errorf("%v, %v", out, err)
	}
	if got := c.learnt(); len(got) > 0 || len(c.advice) > 0 {
		t.Errorf("it has learnt from %v rows; advice %q", got, c.advice)
	}
}

// TestTuneIsNotCalibrated: tune asks only about its own rows, and a plan asks about none.
func TestTuneIsNotCalibrated(t *testing.T) {
	c := calibrate(t, costs, witness+"\ncalibrate = 5", "").input(400)
	p := mustOpen(t, c.path, c.o)
	defer p.Close()
	found, err := p.Plan(t.Context())
	must.Do(t, err)
	f := found.Forecast.Calibrating
	must.Equal(t, "wanted, done, rows, calls, whether it has a cost, requests", []any{true, false, 5, 5, true, int32(0)}, []any{f.Wanted, f.Done, f.Rows, f.Calls, f.Cost > 0, c.asked.Load()})
	rows := "text\tlabel\n"
	for i := range 10 {
		rows += fmt.Sprintf("red apple %d\tfruit\nblue car %[1]d\tvehicle\n", i)
	}
	c.o.Input = beside(t, c.path, "tune.tsv", rows)
	c.o.Set = []pipeline.Override{{Target: "sample.llm.when", Value: `null`}}
	text, err := os.ReadFile(c.path)
	must.Do(t, err)
	must.Do(t, os.WriteFile(c.path, []byte(strings.Replace(string(text), "calibrate = 5", "calibrate = 5\nconfig { weights = var.weights }", 1)+"variable \"weights\" {\n  type    = map(number)\n  default = {}\n}\n"), 0o600))
	tuned(t, c.path, c.o, tune.Options{Folds: 4})
	if got := c.asked.Load(); got != 20 {
		t.Errorf("%d requests", got)
	}
}

// asker is a paid voter that reads only the text.
func asker() sdk.Stage {
	return sdk.SampleStage("asker", "A voter of the test.", func(_ context.Context, s sdk.Setup, c service) (sdk.Sampler, error) {
		return model{c.URL, s.Host}, nil
	}, sdk.Network(), sdk.Reads(sdk.ColumnText))
}
