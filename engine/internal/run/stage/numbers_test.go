package stage_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
)

// poison is a stage of each kind that returns the number that a text ends with,
// after an @.
type poison struct{ harmless atomic.Bool }

func (p *poison) number(text string, otherwise float64) float64 {
	_, number, given := strings.Cut(text, "@")
	if !given || p.harmless.Load() {
		return otherwise
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil && !math.IsInf(x, 0) {
		return otherwise
	}
	return x
}

func (p *poison) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		sample := sdk.Sample{Answers: []sdk.Answer{{Label: it.Text[:1], Weight: p.number(it.Text, 1)}, {Label: "z", Weight: .5}}}
		if strings.HasSuffix(it.Text, "@tokens") && !p.harmless.Load() {
			sample.Usage.OutputTokens = math.MaxInt64
		}
		all[i] = []sdk.Sample{sample}
	}
	return all, nil
}

func (p *poison) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	all := make([]sdk.Verdict, len(b.Items))
	for i, it := range b.Items {
		all[i] = sdk.Verdict{Answer: it.Text[:1], Agreement: p.number(it.Text, .5)}
	}
	return all, nil
}

func (p *poison) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	all := make([][]sdk.Ranked, len(b.Items))
	for i, it := range b.Items {
		for j := range it.Candidates {
			all[i] = append(all[i], sdk.Ranked{Candidate: j, Score: float32(p.number(it.Text, float64(-j)))})
		}
	}
	return all, nil
}

func (p *poison) Dimension() int { return 2 }

func (p *poison) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = []float32{float32(p.number(text, .6)), .8}
	}
	return all, nil
}

func (p *poison) catalog() enginetest.Catalog {
	return runtest.Stages(
		sdk.SampleStage("poison", "Votes.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return p, nil }, sdk.Reads(sdk.ColumnText)),
		sdk.ElectStage("poison", "Elects.", func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return p, nil }, sdk.Reads(sdk.ColumnText)),
		sdk.RerankStage("poison", "Reranks.", func(context.Context, sdk.Setup, struct{}) (sdk.Reranker, error) { return p, nil }),
		sdk.EmbedStage("poison", "Embeds.", func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) { return p, nil }),
	)
}

// A number that cannot be used fails its item, with the stage, the plugin and the
// value; the other items of the batch are as if it had never been.
func TestNumbersFailTheirItem(t *testing.T) {
	for _, c := range []struct {
		kind, pipeline string
		replace        []string
		begin          string            // of the message
		numbers        map[string]string // what a text ends with, and what the message says
	}{
		{"sample", `
			sample "mine" { use = "poison" }
			elect "e" { use = "soft" }`, nil, "sample.mine: plugin test 0.1.0 returned ", map[string]string{
			"NaN": "weight NaN for", "+Inf": "weight +Inf for", "-Inf": "weight -Inf for", "1e308": "weight 1e+308 for", "-1": "weight -1 for",
			"tokens": "a count of 9223372036854775807 tokens",
		}},
		{"elect", `
			sample "v" { use = "always" }
			elect "mine" { use = "poison" }`, nil, "elect.mine: plugin test 0.1.0 returned ", map[string]string{
			"NaN": "agreement NaN;", "+Inf": "agreement +Inf;", "-Inf": "agreement -Inf;", "1e308": "agreement 1e+308;", "-1": "agreement -1;",
		}},
		{"rerank", `
			retrieve "near" { from = knowledge.k }
			rerank "mine" { use = "poison" }`, nil, "rerank.mine: plugin test 0.1.0 returned ", map[string]string{
			"NaN": "score NaN for", "+Inf": "score +Inf for", "-Inf": "score -Inf for", "1e308": "score +Inf for", "2e30": "score 2e+30 for",
		}},
		{"embed", `
			retrieve "near" { from = knowledge.k }
			sample "knn" { use = "neighbours" }
			sample "proto" { use = "prototype" }
			elect "e" { use = "soft" }`, []string{`use = "hashing"`, `use = "poison"`},
			"retrieve.near: embed.k: plugin test 0.1.0 returned ", map[string]string{
				"NaN": "a vector with NaN at position 1", "+Inf": "a vector with +Inf at", "-Inf": "a vector with -Inf at", "1e308": "a vector with +Inf at", "3": "a vector of norm 3.1",
			}},
		{"lexical with prototypes", `
			retrieve "near" {
				from = knowledge.k
				mode = "lexical"
			}
			sample "proto" { use = "prototype" }
			elect "e" { use = "soft" }`, []string{`use = "hashing"`, `use = "poison"`},
			"retrieve.near: embed.k: plugin test 0.1.0 returned ", map[string]string{"NaN": "a vector with NaN at position 1"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			p := &poison{}
			r := runtest.Pipeline(t, append(p.catalog(), runtest.Voter("always", runtest.Always("x"))), c.pipeline, c.replace...)
			var texts []string
			wanted := map[int]string{}
			for i := range 120 {
				texts = append(texts, fmt.Sprintf("%c text %d", 'a'+i%3, i))
			}
			at := 0
			for number, why := range c.numbers {
				at += 13
				texts[at] += "@" + number
				wanted[at] = c.begin + why
			}
			lines := func(harmless bool) (all []string, failures map[int]string) {
				p.harmless.Store(harmless)
				failures = map[int]string{}
				totals, err := r.Items(t.Context(), runtest.Feed(texts...), nil, runtest.Each(func(one outcome.Result) error {
					if one.Failure != nil {
						failures[len(all)] = one.Failure.Error()
					}
					var line bytes.Buffer
					w, err := result.NewWriter(&line, result.JSONL, result.Options{})
					if err == nil {
						err = w.Write(one)
					}
					if err == nil {
						err = w.Close()
					}
					all = append(all, line.String())
					return err
				}))
				if err != nil || totals.Items != len(texts) || totals.Failed != len(failures) {
					t.Fatalf("%d of %d items, %d failed: %v", totals.Items, len(texts), totals.Failed, err)
				}
				return all, failures
			}
			want, none := lines(true)
			got, failures := lines(false)
			if len(none) > 0 || len(failures) != len(wanted) {
				t.Errorf("%v and %v failed", none, failures)
			}
			for i := range texts {
				if begin := wanted[i]; begin != "" && !strings.HasPrefix(failures[i], begin) {
					t.Errorf("%s: got %q, want %q", texts[i], failures[i], begin)
				} else if begin == "" && got[i] != want[i] {
					t.Errorf("%s: got %s, undisturbed %s", texts[i], got[i], want[i])
				}
			}
		})
	}
}

// A vector that cannot be used is the embedder's fault, and leaves out its row alone.
func TestNumbersOfABuild(t *testing.T) {
	p := &poison{}
	var r knowledge.BuildReport
	runtest.PipelineWith(t, p.catalog(), run.Options{Knowledge: func(got knowledge.BuildReport) { r = got }}, `
		retrieve "near" { from = knowledge.k }`, `use = "hashing"`, `use = "poison"`, "rows.tsv", "poison.tsv")
	if r.Entries != 4 || r.InvalidCount != 2 {
		t.Fatalf("got %+v", r)
	}
	for i, want := range []string{"poison.tsv:3: embed.k: plugin test 0.1.0 returned a vector with NaN at position 1", "poison.tsv:5: embed.k: plugin test 0.1.0 returned a vector of norm 5.06"} {
		if got := r.Invalid[i].String(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
