package prompt_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const chatOfSets = `You sort texts by label. A text has one label or several. The user writes a text. Find all labels that apply to it.

Answer with one JSON object and nothing else. It has two properties, in this order:
- "reasoning": one or two sentences on what the text is about and which labels that speaks for
- "labels": a list of all labels that apply, each written exactly as below; an empty list if none of them applies

The texts before the last were labelled by hand, and their reasoning says no more than that. Write yours out.

The only labels there are, those of the most similar known texts first:
- alarm
- weather
- balance`

const completionOfSets = `You sort short texts by label. A text has one label or several, with "; " between them. Complete the last line with all labels that apply to the last text, and write nothing else.
The only labels there are: alarm, balance, weather.

Text: my balance
Label: balance
Text: wake me if it rains
Label: alarm; weather
Text: will it rain at six
Label:`

const chatOfLevels = `You sort texts by label. The user writes a text. Find the label that fits it best.

Answer with one JSON object and nothing else. It has one property:
- "label": the label, written exactly as below

If none of the labels fits, the label is: other

The only labels there are:
- Agent
- Place
- Work

The most similar known texts have these, the most similar first:
- Work
- Agent`

// askedFor returns the prompt that a stage writes for labels of a form.
func askedFor(t *testing.T, stage sdk.Stage, f sdk.LabelForm, config string, b sdk.Batch) sdk.Prompt {
	t.Helper()
	opened, err := stage.Open(t.Context(), sdk.Setup{Labels: f}, []byte(config))
	must.Do(t, err)
	all, err := opened.(sdk.Prompter).Prompt(t.Context(), b)
	must.Do(t, err)
	return all[0][0]
}

func TestPromptsForSets(t *testing.T) {
	sets := sdk.LabelForm{Many: true}
	b := sdk.Batch{Labels: []string{"alarm", "balance", "weather"}, Items: []sdk.Item{{Text: "will it rain at six", Candidates: []sdk.Candidate{
		{Text: "wake me if it rains", Label: "alarm; weather"}, {Text: "my balance", Label: "balance"},
	}}}}
	for name, test := range map[string]struct {
		stage  sdk.Stage
		config string
		want   sdk.Prompt
	}{
		"chat": {prompt.Chat(), `{"shots": 1}`, sdk.Prompt{
			Messages: []sdk.Message{
				{Role: "system", Text: chatOfSets},
				{Role: "user", Text: "wake me if it rains"}, {Role: "assistant", Text: `{"reasoning": "labelled by hand", "labels": ["alarm","weather"]}`},
				{Role: "user", Text: "will it rain at six"},
			},
			Labels: []string{"alarm", "weather", "balance"}, Fields: []string{"reasoning", "labels"},
		}},
		"completion": {prompt.Completion(), `{}`, sdk.Prompt{Text: completionOfSets, Labels: b.Labels}},
	} {
		if diff := cmp.Diff(test.want, askedFor(t, test.stage, sets, test.config, b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPromptsInLevels(t *testing.T) {
	tree := sdk.LabelForm{Levels: "/"}
	b := sdk.Batch{Labels: []string{"Agent/Person/Athlete", "Agent/Person/Monk", "Place/River", "Work"}, Items: []sdk.Item{{Text: "a song", Candidates: []sdk.Candidate{
		{Text: "a ballad", Label: "Work"}, {Text: "a singer", Label: "Agent/Person/Monk"},
	}}}}
	item, shot := sdk.Message{Role: "user", Text: "a song"}, sdk.Message{Role: "user", Text: "a singer"}
	got := askedFor(t, prompt.Chat(), tree, `{"levels": true, "labels": "all", "none": "other", "reasoning": false, "shots": 0}`, b)
	want := sdk.Prompt{
		Messages: []sdk.Message{{Role: "system", Text: chatOfLevels}, item}, None: "other", Fields: []string{"label"}, Levels: "/",
		Labels: []string{"Work", "Agent/Person/Monk", "Agent/Person/Athlete", "Place/River"}, // the likeliest first, in whatever order the message has them
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = askedFor(t, prompt.Chat(), tree, `{"levels": true, "reasoning": false}`, b)
	if diff := cmp.Diff([]sdk.Message{shot, {Role: "assistant", Text: `{"label": "Agent"}`}}, got.Messages[1:3]); diff != "" || len(got.Labels) != 2 {
		t.Errorf("labels %q, turns (-want +got):\n%s", got.Labels, diff)
	}
	if got := askedFor(t, prompt.Chat(), tree, `{"labels": "all"}`, b); got.Levels != "" || !cmp.Equal(got.Labels, b.Labels) {
		t.Errorf("without levels: %+v", got)
	}
}

func TestArgumentsThatDoNotFitTheLabels(t *testing.T) {
	for _, test := range []struct {
		form             sdk.LabelForm
		config, argument string
	}{
		{sdk.LabelForm{}, `{"levels": true}`, "levels"},
		{sdk.LabelForm{Many: true}, `{"levels": true}`, "levels"},
		{sdk.LabelForm{Levels: "/"}, `{"levels": true, "answer": "list"}`, "levels"},
		{sdk.LabelForm{Many: true}, `{"none": "other"}`, "none"},
	} {
		_, err := prompt.Chat().Open(t.Context(), sdk.Setup{Labels: test.form}, []byte(test.config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != test.argument {
			t.Errorf("%+v, %s: error %v, want one about %s", test.form, test.config, err, test.argument)
		}
	}
}
