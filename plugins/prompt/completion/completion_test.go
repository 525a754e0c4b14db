package completion_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/prompt/completion"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

var batch = sdk.Batch{
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

const whole = `You sort short texts by label. Every text has exactly one label. Complete the last line with the label that fits the last text best: write the label and nothing else.
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

const short = `You sort short texts by label. Every text has exactly one label. Complete the last line with the label that fits the last text best: write the label and nothing else.

Text: wake me at six
Label: alarm
Text: is my account empty
Label: balance
Text: what is my balance
Label: balance
Text: how much money is left
Label:`

func TestPrompt(t *testing.T) {
	tests := []struct {
		name, config, template string
		want                   string
	}{
		{name: "random first, the nearest last", want: whole},
		{name: "fewer, and no list", config: `{"k": 2, "random": 1, "labels": false}`, want: short},
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
				config = withTemplate(t, test.template)
			}
			stage, err := completion.Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
			if err != nil {
				t.Fatal(err)
			}
			prompts, err := stage.(sdk.Prompter).Prompt(t.Context(), batch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]sdk.Prompt{{{Text: test.want}}}, prompts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestItemWithoutExamples(t *testing.T) {
	stage, err := completion.Stage().Open(t.Context(), sdk.Setup{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := stage.(sdk.Prompter).Prompt(t.Context(), sdk.Batch{Items: []sdk.Item{{Text: "hello"}}})
	if err != nil || !strings.HasSuffix(prompts[0][0].Text, "nothing else.\n\nText: hello\nLabel:") {
		t.Errorf("prompts %q, error %v", prompts, err)
	}
}

func TestFingerprintFollowsTheTemplate(t *testing.T) {
	fingerprint := func(config string) string {
		stage, err := completion.Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		return stage.(sdk.Fingerprinter).Fingerprint()
	}
	one, same, other := withTemplate(t, "{{.Text}} =>"), withTemplate(t, "{{.Text}} =>"), withTemplate(t, "{{.Text}}:")
	if fingerprint(one) != fingerprint(same) || fingerprint(one) == fingerprint(other) || fingerprint(one) == fingerprint("") {
		t.Error("the fingerprint must be that of the template's text")
	}
}

func TestConformance(t *testing.T) { sdktest.Stage(t, completion.Stage(), `{}`) }

func TestArguments(t *testing.T) {
	tests := []struct{ name, config, argument string }{
		{"k", `{"k": -1}`, "k"},
		{"random", `{"random": -1}`, "random"},
		{"missing template", `{"template": "/does/not/exist"}`, "template"},
		{"a template that needs examples", withTemplate(t, "{{(index .Random 0).Text}}"), "template"},
		{"broken template", withTemplate(t, "{{.Text"), "template"},
		{"unknown field", withTemplate(t, "{{.Utterance}}"), "template"},
		{"unknown field of an example", withTemplate(t, "{{range .Random}}{{.Score}}{{end}}"), "template"},
		{"unknown field where there is nothing", withTemplate(t, "{{range .Random}}{{else}}{{.Nothing}}{{end}}"), "template"},
		{"unknown function", withTemplate(t, "{{upper .Text}}"), "template"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := completion.Stage().Open(t.Context(), sdk.Setup{}, []byte(test.config))
			if fault := new(sdk.ArgumentError); !errors.As(err, &fault) || fault.Argument != test.argument {
				t.Errorf("error %v, want one about %s", err, test.argument)
			}
		})
	}
}

// withTemplate returns a config that names a file with the given template.
func withTemplate(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompt.tmpl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return `{"template": ` + strconv.Quote(path) + `}`
}
