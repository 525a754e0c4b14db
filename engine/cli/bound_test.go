//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/show/plan"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// asking is a random voter with its items and the server that it asks.
type asking struct {
	stage   *pipeline.Stage
	items   []sdk.Item
	url     string
	model   string
	limited bool // its answers are
	schema  bool // goes along
}

func randomly(t *testing.T, r *rand.Rand) asking {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	long := pick("fruit", "neither of them", strings.Repeat("größer und 更大 ", 100))
	server := modelserver.Serve(t, modelserver.Options{
		Bytes: r.IntN(2) == 0, IgnoreN: r.IntN(4) == 0, MaxN: r.IntN(4),
		Answer: func(a modelserver.Ask, choice int) string {
			if (a.Number+choice)%5 == 0 {
				return "label 1"
			}
			return long
		},
	})
	model, most := pick("tiny", "tiny", "any name"), []int{0, 0, -1, 1, 7, 300}[r.IntN(6)]
	chat, structured := r.IntN(2) == 0, pick("auto", "off", "json_schema", "choice")
	if chat && structured == "choice" {
		structured = "auto"
	}
	config, err := json.Marshal(map[string]any{
		"base_url": server.URL, "model": model, "max_tokens": most, "max_n": []int{1, 2, 128}[r.IntN(3)], "structured": structured, "stop": []string{},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := asking{
		stage: &pipeline.Stage{Name: "llm", Info: ours(sdk.KindSample, "openai"), N: 1 + r.IntN(7), Resamples: r.IntN(3), Config: pipeline.Config{Open: config}},
		url:   server.URL, model: model, limited: most >= 0, schema: structured == "json_schema" || structured == "auto" && chat,
	}
	for i := range 3 {
		item := sdk.Item{ID: fmt.Sprint(i)}
		for range []int{1, a.stage.N}[r.IntN(2)] {
			item.Prompts = append(item.Prompts, randomPrompt(r, i, chat))
		}
		a.items = append(a.items, item)
	}
	return a
}

// randomPrompt has some shots, and some labels.
func randomPrompt(r *rand.Rand, item int, chat bool) sdk.Prompt {
	var p sdk.Prompt
	for label := range 1 + r.IntN(40) {
		p.Labels = append(p.Labels, fmt.Sprint("label ", label))
	}
	for shot := range r.IntN(8) {
		p.Messages = append(p.Messages, sdk.Message{Role: sdk.MessageUser, Text: fmt.Sprintf("shot %d: \"Äpfel\" & <苹果>\n", shot)})
	}
	p.Messages = append(p.Messages, sdk.Message{Role: sdk.MessageUser, Text: fmt.Sprintf("item %d, drawn %d: which label?", item, r.IntN(1000))})
	if chat {
		p.Fields = []string{"reasoning", sdk.LabelProperty}
		return p
	}
	for _, m := range p.Messages {
		p.Text += m.Text
	}
	p.Messages = nil
	return p
}

// TestNeverAboveAtMost compares what random voters take with what plan says that they
// take at most.
func TestNeverAboveAtMost(t *testing.T) {
	bounded, schemas, near := 0, 0, 0.
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			a := randomly(t, rand.New(rand.NewPCG(seed, 3)))
			log := slog.New(slog.DiscardHandler)
			profiles := governor.NewProfiles(t.TempDir())
			if err := profiles.Put(a.url, a.model, []byte(`{"thinking": "no"}`)); err != nil {
				t.Fatal(err)
			}
			control := governor.New(t.Context(), governor.Options{Log: log, Profiles: profiles})
			opened, err := a.stage.Info.Open(t.Context(), sdk.Setup{Samples: a.stage.N, Host: control.Stage(governor.Stage{Name: "sample.llm"}), Log: log}, a.stage.Config.Open)
			if err != nil {
				t.Fatal(err)
			}
			dry := plan.NewDryRun()
			if _, err := dry.Sampler(a.stage, opened.(sdk.Forecaster)).Sample(t.Context(), sdk.Batch{Items: a.items}); err != nil {
				t.Fatal(err)
			}
			v := dry.Voter("llm")
			if a.limited != (v.Unknown == "") || v.Items != len(a.items) || control.Snapshot().Total.Calls > 0 {
				t.Fatalf("%+v, want a bound %v; %+v", v, a.limited, control.Snapshot())
			}
			for _, item := range a.items {
				for accepted, try := false, 0; !accepted && try <= a.stage.Resamples; try++ { // as engine/internal/run does
					item.Drawn = try * a.stage.N
					samples, err := opened.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: []sdk.Item{item}})
					if err != nil {
						t.Fatal(err)
					}
					accepted = slices.ContainsFunc(samples[0], func(s sdk.Sample) bool { return strings.HasPrefix(s.Answers[0].Label, "label ") })
				}
			}
			if !a.limited {
				return
			}
			bounded++
			if a.schema {
				schemas++
			}
			took := control.Snapshot().Total
			if took.InputTokens == 0 || took.InputTokens > v.Most.InputTokens || took.OutputTokens > v.Most.OutputTokens {
				t.Errorf("took %+v, at most %+v; %s", took, v.Most, a.stage.Config.Open)
			}
			near = max(near, float64(took.InputTokens)/float64(v.Most.InputTokens))
		})
	}
	if bounded < 25 || schemas < 8 || near < 0.5 {
		t.Errorf("%d voters have a bound, %d of them with a schema; the most that was used of a bound is %.2f: nothing was tested", bounded, schemas, near)
	}
}

// TestPlanIsABound compares plan with the run that follows it.
func TestPlanIsABound(t *testing.T) {
	p := newPaid(t)
	if err := governor.NewProfiles(filepath.Join(p.dir, ".racflow", "profiles")).Put(p.server.URL, "test", []byte(`{"thinking": "no"}`)); err != nil {
		t.Fatal(err)
	}
	out, _ := good(t, racflow(t, p.dir, "plan", "-var", "url="+p.server.URL, "p.hcl"))
	if p.server.Calls() > 0 {
		t.Fatalf("%d calls\n%s", p.server.Calls(), out)
	}
	const line = `(?s)sample\.llm +120 +240 +expected .* at most +[0-9]+ +`
	requests := count(t, out, `sample\.llm +120 +240 +expected +([0-9]+) `)
	in, most := count(t, out, line+`([0-9]+)`), count(t, out, line+`[0-9]+ +([0-9]+)`)
	code, stderr := p.run(t)
	tookIn, tookOut := count(t, stderr, `([0-9]+) tokens in`), count(t, stderr, `([0-9]+) out`)
	if code != 0 || tookIn == 0 || tookIn > in || tookOut == 0 || tookOut > most || requests != p.server.Calls() {
		t.Errorf("exit code %d, %d calls\n%s%s", code, p.server.Calls(), out, stderr)
	}
}
