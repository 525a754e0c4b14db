package prompt_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var completionBatch = sdk.Batch{
	Labels: []string{"alarm", "balance", "weather"},
	Items: []sdk.Item{{
		Text: "how much\n money  is left",
		Candidates: []sdk.Candidate{
			{Text: "what is my balance", Label: "balance"},
			{Text: "no label"},
			{Text: "is my account empty", Label: "balance"},
			{Text: "how much rain will there be", Label: "weather"},
		},
		Random: []sdk.Candidate{
			{Text: "wake me\nat six", Label: "alarm"},
			{Text: "will it snow", Label: "weather"},
		},
	}},
}

const completionWhole = `You sort short texts by label. Every text has exactly one label. Complete the last line with the label that fits the last text best: write the label and nothing else.
The only labels there are: alarm, balance, weather.

Text: wake me at six
Label: alarm
Text: will it snow
Label: weather
Text: how much rain will there be
Label: weather
Text: is my account empty
Label: balance
Text: what is my balance
Label: balance
Text: how much money is left
Label:`

const completionShort = `You sort short texts by label. Every text has exactly one label. Complete the last line with the label that fits the last text best: write the label and nothing else.

Text: wake me at six
Label: alarm
Text: is my account empty
Label: balance
Text: what is my balance
Label: balance
Text: how much money is left
Label:`

func TestCompletionPrompt(t *testing.T) {
	tests := []struct {
		name, config, template string
		want                   string
	}{
		{name: "random first, the nearest last", want: completionWhole},
		{name: "fewer, and no list", config: `{"k": 2, "random": 1, "labels": false}`, want: completionShort},
		{
			name:     "a template of one's own",
			template: "{{join .Labels \"|\"}}\n{{range .Random}}{{.Text}} -> {{.Label}}\n{{end}}{{range .Neighbours}}{{.Label}},{{end}}\n{{.Text}} ->\n",
			want:     "alarm|balance|weather\nwake me at six -> alarm\nwill it snow -> weather\nweather,balance,balance,\nhow much money is left ->",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := test.config
			if test.template != "" {
				config = withTemplate(t, test.template, "")
			}
			stage, err := prompt.Completion().Open(t.Context(), sdk.Setup{}, []byte(config))
			must.Do(t, err)
			prompts, err := stage.(sdk.Prompter).Prompt(t.Context(), completionBatch)
			must.Do(t, err)
			if diff := cmp.Diff([][]sdk.Prompt{{{Text: test.want, Labels: completionBatch.Labels}}}, prompts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// prompts opens a stage and returns the prompts of one item.
func completionPrompts(t *testing.T, config string, samples int, b sdk.Batch) ([]sdk.Prompt, error) {
	t.Helper()
	stage, err := prompt.Completion().Open(t.Context(), sdk.Setup{Samples: samples}, []byte(config))
	must.Do(t, err)
	all, err := stage.(sdk.Prompter).Prompt(t.Context(), b)
	return all[0], err
}

// examples returns a config whose prompts list the random examples and the
// neighbours.
func examples(t *testing.T, more string) string {
	return withTemplate(t, "{{range .Random}}{{.Text}} {{end}}| {{range .Neighbours}}{{.Text}} {{end}}", more)
}

// numbered has neighbours n1 to n4, nearest first, and random examples r1 to r6.
func numbered() sdk.Batch {
	var item sdk.Item
	for i := range 6 {
		item.Random = append(item.Random, sdk.Candidate{Text: fmt.Sprint("r", i+1), Label: "a"})
		if i < 4 {
			item.Candidates = append(item.Candidates, sdk.Candidate{Text: fmt.Sprint("n", i+1), Label: "a"})
		}
	}
	return sdk.Batch{Labels: []string{"a"}, Items: []sdk.Item{item}}
}

func TestRedraw(t *testing.T) {
	tests := []struct {
		name, config string
		samples      int
		draw         sdk.Draw
		want         []string
	}{
		{"item", `"random": 2, "k": 1, "seed": 7, `, 3, sdk.Draw{Count: 2, Parts: 1, Seed: 7}, []string{"r1 r2 | n1"}},
		{"run", `"random": 2, "k": 1, "redraw": "run", `, 3, sdk.Draw{Count: 2, Parts: 1, Shared: true}, []string{"r1 r2 | n1"}},
		{"sample", `"random": 2, "k": 1, "redraw": "sample", `, 3, sdk.Draw{Count: 6, Parts: 3}, []string{"r1 r2 | n1", "r3 r4 | n1", "r5 r6 | n1"}},
		{"sample, no model", `"random": 2, "k": 1, "redraw": "sample", `, 0, sdk.Draw{Count: 2, Parts: 1}, []string{"r1 r2 | n1"}},
		{
			"sample, too few in the knowledge", `"random": 4, "k": 0, "redraw": "sample", `, 3, sdk.Draw{Count: 12, Parts: 3},
			[]string{"r1 r2 r3 r4 |", "r5 r6 r1 r2 |", "r3 r4 r5 r6 |"},
		},
		{"sample, fewer than one draw", `"random": 9, "k": 0, "redraw": "sample", `, 2, sdk.Draw{Count: 18, Parts: 2}, []string{"r1 r2 r3 r4 r5 r6 |", "r1 r2 r3 r4 r5 r6 |"}},
		{"none", `"random": 0, "k": 2, "redraw": "sample", `, 2, sdk.Draw{Parts: 2}, []string{"| n2 n1", "| n2 n1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := examples(t, test.config)
			stage, err := prompt.Completion().Open(t.Context(), sdk.Setup{Samples: test.samples}, []byte(config))
			must.Do(t, err)
			if draw := stage.(sdk.Drawer).Random(); draw != test.draw {
				t.Errorf("it wants %+v, want %+v", draw, test.draw)
			}
			got, err := completionPrompts(t, config, test.samples, numbered())
			must.Do(t, err)
			var texts []string
			for _, p := range got {
				texts = append(texts, p.Text)
			}
			if diff := cmp.Diff(test.want, texts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Every example is three characters long here, with its space.
func TestCompletionBudget(t *testing.T) {
	for budget, want := range map[int]string{
		0: "r1 r2 r3 | n4 n3 n2 n1", 6: "r1 r2 r3 | n4 n3 n2 n1", 5: "r1 r2 r3 | n3 n2 n1", 4: "r1 r2 r3 | n2 n1", 3: "r1 r2 r3 |", 2: "r1 r2 |", 1: "r1 |",
	} {
		got, err := completionPrompts(t, examples(t, fmt.Sprintf(`"random": 3, "max_tokens": %d, `, budget)), 0, numbered())
		if err != nil || got[0].Text != want {
			t.Errorf("%d tokens: %+v, error %v, want %q", budget, got, err, want)
		}
	}
	got, err := completionPrompts(t, `{"max_tokens": 20}`, 0, numbered())
	if rows := (sdk.RowErrors{}); !errors.As(err, &rows) || len(got) > 0 || sdk.CodeOf(rows[0]) != sdk.CodeInvalid || !strings.Contains(rows[0].Error(), "max_tokens is 20") {
		t.Errorf("a prompt that is too long without examples: %v, error %v", got, err)
	}
}

func TestNone(t *testing.T) {
	got, err := completionPrompts(t, `{"none": "balance"}`, 0, completionBatch)
	must.Do(t, err)
	if diff := cmp.Diff([]string{"alarm", "weather"}, got[0].Labels); diff != "" || got[0].None != "balance" {
		t.Errorf("none is %q, labels (-want +got):\n%s", got[0].None, diff)
	}
	if want := "The only labels there are: alarm, weather.\nA text that none of the labels fits is labelled: balance\n\nText: "; !strings.Contains(got[0].Text, want) {
		t.Errorf("the prompt lacks %q:\n%s", want, got[0].Text)
	}
}

func TestItemWithoutExamples(t *testing.T) {
	stage, err := prompt.Completion().Open(t.Context(), sdk.Setup{}, nil)
	must.Do(t, err)
	prompts, err := stage.(sdk.Prompter).Prompt(t.Context(), sdk.Batch{Items: []sdk.Item{{Text: "hello"}}})
	if err != nil || !strings.HasSuffix(prompts[0][0].Text, "nothing else.\n\nText: hello\nLabel:") {
		t.Errorf("prompts %+v, error %v", prompts, err)
	}
}

func TestCompletionConformance(t *testing.T) {
	sdktest.Stage(t, prompt.Completion(), `{"none": "none", "max_tokens": 200, "redraw": "sample"}`)
}

func TestCompletionArguments(t *testing.T) {
	tests := []struct{ name, config, argument string }{
		{"k", `{"k": -1}`, "k"},
		{"random", `{"random": -1}`, "random"},
		{"seed", `{"seed": -1}`, "seed"},
		{"max_tokens", `{"max_tokens": -1}`, "max_tokens"},
		{"redraw", `{"redraw": "always"}`, "redraw"},
		{"missing template", `{"template": "/does/not/exist"}`, "template"},
		{"a template that needs examples", withTemplate(t, "{{(index .Random 0).Text}}", ""), "template"},
		{"broken template", withTemplate(t, "{{.Text", ""), "template"},
		{"unknown field", withTemplate(t, "{{.Utterance}}", ""), "template"},
		{"unknown field of an example", withTemplate(t, "{{range .Random}}{{.Score}}{{end}}", ""), "template"},
		{"unknown field where there is nothing", withTemplate(t, "{{range .Random}}{{else}}{{.Nothing}}{{end}}", ""), "template"},
		{"unknown function", withTemplate(t, "{{upper .Text}}", ""), "template"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := prompt.Completion().Open(t.Context(), sdk.Setup{}, []byte(test.config))
			if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != test.argument {
				t.Errorf("error %v, want one about %s", err, test.argument)
			}
		})
	}
}

func TestCompletionGolden(t *testing.T) {
	apitest.CheckReply(t, prompt.Completion(), `{}`, "1 30b7bdaf0a193b3c")
}
