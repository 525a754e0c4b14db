package prompt_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/support"
)

func chatBatch() sdk.Batch {
	return sdk.Batch{
		Labels: []string{"alarm", "balance", "card \"lost\"", "weather"},
		Items: []sdk.Item{{
			Text: " how much\nmoney is left ",
			Candidates: []sdk.Candidate{
				{Text: "what is my balance", Label: "balance"},
				{Text: "no label"},
				{Text: "my card & purse\nare gone", Label: "card \"lost\""},
				{Text: "is my account empty", Label: "balance"},
				{Text: "how much rain will there be", Label: "weather"},
			},
		}},
	}
}

func chatPrompt(t *testing.T, config string, b sdk.Batch) (sdk.Prompt, error) {
	t.Helper()
	stage, err := prompt.Chat().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	all, err := stage.(sdk.Prompter).Prompt(t.Context(), b)
	if err != nil {
		return sdk.Prompt{}, err
	}
	return all[0][0], nil
}

const chatWhole = `You sort texts by label. The user writes a text. Find the label that fits it best.

Answer with one JSON object and nothing else. It has two properties, in this order:
- "reasoning": one or two sentences on what the text is about and which label that speaks for
- "label": the label, written exactly as below

The texts before the last were labelled by hand, and their reasoning says no more than that. Write yours out.

If none of the labels fits, the label is: other

The only labels there are, those of the most similar known texts first:
- balance
- card "lost"
- weather`

const chatShort = `You sort texts by label. The user writes a text. Find the label that fits it best.

Answer with one JSON object and nothing else. It has one property:
- "label": the label, written exactly as below

The only labels there are:
- alarm
- balance
- card "lost"
- weather`

const near = chatShort + `

The most similar known texts have these, the most similar first:
- balance
- card "lost"
- weather`

const list = `You sort texts by label. The user writes a text. Find the label that fits it best.

Answer with one JSON object and nothing else. It has one property:
- "labels": a list of the labels that may fit, the likeliest first, each written exactly as below; an empty list if none of them fits

The only labels there are, those of the most similar known texts first:
- balance
- card "lost"
- weather`

func TestChatPrompt(t *testing.T) {
	zero := chatBatch()
	zero.Items[0].Candidates = nil
	item := sdk.Message{Role: "user", Text: "how much\nmoney is left"}
	tests := []struct {
		name, config string
		batch        sdk.Batch
		want         sdk.Prompt
	}{
		{"neighbours", `{"shots": 2, "none": "other"}`, chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{
				{Role: "system", Text: chatWhole},
				{Role: "user", Text: "my card & purse are gone"}, {Role: "assistant", Text: `{"reasoning": "labelled by hand", "label": "card \"lost\""}`},
				{Role: "user", Text: "what is my balance"}, {Role: "assistant", Text: `{"reasoning": "labelled by hand", "label": "balance"}`},
				item,
			},
			Labels: []string{"balance", "card \"lost\"", "weather"}, None: "other", Fields: []string{"reasoning", "label"},
		}},
		{"zero-shot", `{"reasoning": false}`, zero, sdk.Prompt{
			Messages: []sdk.Message{{Role: "system", Text: chatShort}, item},
			Labels:   []string{"alarm", "balance", "card \"lost\"", "weather"}, Fields: []string{"label"},
		}},
		{"all labels, which begin alike for all items", `{"shots": 0, "labels": "all", "reasoning": false}`, chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{{Role: "system", Text: near}, item},
			Labels:   []string{"alarm", "balance", "card \"lost\"", "weather"}, Fields: []string{"label"},
		}},
		{"a list", `{"shots": 1, "answer": "list", "reasoning": false}`, chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{
				{Role: "system", Text: list},
				{Role: "user", Text: "what is my balance"}, {Role: "assistant", Text: `{"labels": ["balance"]}`},
				item,
			},
			Labels: []string{"balance", "card \"lost\"", "weather"}, Fields: []string{"labels"},
		}},
		{"a list and reasons", withTemplate(t, "{{.List}}", `"shots": 1, "answer": "list", `), chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{
				{Role: "system", Text: "true"},
				{Role: "user", Text: "what is my balance"}, {Role: "assistant", Text: `{"reasoning": "labelled by hand", "labels": ["balance"]}`},
				item,
			},
			Labels: []string{"balance", "card \"lost\"", "weather"}, Fields: []string{"reasoning", "labels"},
		}},
		{"a template of one's own", withTemplate(t, "{{join .Labels \"|\"}} {{join .All \"|\"}} {{join .Near \"|\"}} {{.Ranked}} {{.None}} {{.Reasoning}} {{.Shots}}", `"shots": 1, "labels": "all", "reasoning": false, `), chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{
				{Role: "system", Text: `balance|card "lost"|weather|alarm alarm|balance|card "lost"|weather balance|card "lost"|weather true  false 1`},
				{Role: "user", Text: "what is my balance"}, {Role: "assistant", Text: `{"label": "balance"}`},
				item,
			},
			Labels: []string{"alarm", "balance", "card \"lost\"", "weather"}, Fields: []string{"label"},
		}},
		{"none is a label, too", withTemplate(t, "x", `"shots": 0, "none": "weather", `), chatBatch(), sdk.Prompt{
			Messages: []sdk.Message{{Role: "system", Text: "x"}, item},
			Labels:   []string{"balance", "card \"lost\""}, None: "weather", Fields: []string{"reasoning", "label"},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := chatPrompt(t, test.config, test.batch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A turn of the chat has the form of the answer: it can be read like one.
func TestTurnsAreAnswers(t *testing.T) {
	p, err := chatPrompt(t, `{"none": "weather"}`, chatBatch())
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, m := range p.Messages {
		if m.Role != sdk.MessageAssistant {
			continue
		}
		a := support.ReadAnswer(m.Text, p, support.AnswerOptions{})
		var object map[string]string
		if err := json.Unmarshal([]byte(m.Text), &object); err != nil || len(object) != len(p.Fields) || a.Reason != "" {
			t.Errorf("the turn %s: %+v, error %v", m.Text, a, err)
		}
		labels = append(labels, a.Label)
	}
	if diff := cmp.Diff([]string{"", "balance", "card \"lost\"", "balance"}, labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChatBudget(t *testing.T) {
	// One token of system message, six of item; turns of 10, 13, 10 and 12, the
	// nearest first.
	for budget, want := range map[int]int{0: 10, 200: 10, 52: 10, 51: 8, 40: 8, 39: 6, 17: 4, 16: 2, 7: 2} {
		got, err := chatPrompt(t, withTemplate(t, "x", `"reasoning": false, "max_tokens": `+strconv.Itoa(budget)+`, `), chatBatch())
		if err != nil || len(got.Messages) != want {
			t.Errorf("%d tokens: %d messages, error %v, want %d", budget, len(got.Messages), err, want)
		}
	}
	_, err := chatPrompt(t, withTemplate(t, "x", `"max_tokens": 6, `), chatBatch())
	if rows := (sdk.RowErrors{}); !errors.As(err, &rows) || sdk.CodeOf(rows[0]) != sdk.CodeInvalid {
		t.Errorf("a prompt that is too long without turns: error %v", err)
	}
}

func TestChatConformance(t *testing.T) {
	sdktest.Stage(t, prompt.Chat(), `{"labels": "all", "none": "none of these", "max_tokens": 300}`)
}

func TestChatArguments(t *testing.T) {
	tests := []struct{ config, argument string }{
		{`{"shots": -1}`, "shots"},
		{`{"max_tokens": -1}`, "max_tokens"},
		{`{"labels": "some"}`, "labels"},
		{`{"answer": "ranked"}`, "answer"},
		{`{"answer": "list", "none": "other"}`, "none"},
		{`{"template": "/does/not/exist"}`, "template"},
		{withTemplate(t, "{{.Text}}", ""), "template"},
		{withTemplate(t, "{{if not .Labels}}{{.Nothing}}{{end}}", ""), "template"},
	}
	for _, test := range tests {
		_, err := prompt.Chat().Open(t.Context(), sdk.Setup{}, []byte(test.config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != test.argument {
			t.Errorf("%s: error %v, want one about %s", test.config, err, test.argument)
		}
	}
}

func TestChatGolden(t *testing.T) { apitest.CheckReply(t, prompt.Chat(), `{}`, "2 8596ab099c1219dd") }
