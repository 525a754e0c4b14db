package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// inLevels returns a prompt that is asked level by level.
func inLevels(text string) sdk.Prompt {
	return sdk.Prompt{
		Messages: []sdk.Message{{Role: sdk.MessageSystem, Text: "Agent, Place or Work?"}, {Role: sdk.MessageUser, Text: text}},
		Labels:   []string{"Agent/Person/Monk", "Agent/Person/Athlete", "Agent/Team", "Place/Water/River", "Place/Water/Lake", "Work"},
		Fields:   []string{"label"}, Levels: "/",
	}
}

// steps answers each level by the text itself: "Agent > Person > Monk". A dash instead of an answer means that none
// of the listed nodes fits.
func steps(a modelserver.Ask, _ int) string {
	level, text := -1, ""
	for _, m := range a.Messages {
		switch {
		case m.Role == sdk.MessageSystem || m.Role == sdk.MessageAssistant:
			level++
		case text == "":
			text = m.Content
		}
	}
	answer := strings.Split(text, " > ")[level]
	if answer == "-" {
		return "none of these"
	}
	return answer
}

func TestLevels(t *testing.T) {
	tests := []struct {
		text     string
		want     string
		reason   string
		requests int
	}{
		{"Agent > Person > Monk", "Agent/Person/Monk", "", 3},
		{"Agent > Team", "Agent/Team", "", 2},
		{"Work", "Work", "", 1},
		{"Place > Lake", "Place/Water/Lake", "", 2}, // Water is the only node below Place
		{"Agent > -", "Agent", "", 2},
		{"Agent > person > -", "Agent/Person", "", 3},
		{"Agent > Agent/Person/Athlete", "Agent/Person/Athlete", "", 2}, // the whole path at once
		{"Agent > Robot", "Agent/Robot", "it is none of the labels that were listed", 2},
		{"Robot", "Robot", "it is none of the labels that were listed", 1},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			f := openedOpenAI(t, 1, modelserver.Options{Answer: steps}, "")
			item := sdk.Item{Prompts: []sdk.Prompt{inLevels(test.text)}}
			samples, err := f.one(t, item)
			must.Do(t, err)
			if a := samples[0].Answers[0]; len(samples[0].Answers) != 1 || a.Label != test.want || a.Reason != test.reason || a.Weight != 1 {
				t.Errorf("%+v, want %s", samples[0].Answers, test.want)
			}
			if f.server.Calls() != test.requests || samples[0].Usage != f.host.Spent(t) {
				t.Errorf("%d requests, want %d; usage %+v of %+v", f.server.Calls(), test.requests, samples[0].Usage, f.host.Spent(t))
			}
			f.reopen(t, 1, "") // the response cache has each level
			again, err := f.one(t, item)
			if d := cmp.Diff(samples, again); d != "" || err != nil || f.server.Calls() != test.requests {
				t.Errorf("%d requests in all, error %v (-first +again):\n%s", f.server.Calls(), err, d)
			}
		})
	}
}

// TestTurnsOfLevels: a further question continues the chat, and lists only the nodes below the answer.
func TestTurnsOfLevels(t *testing.T) {
	for _, api := range []string{"openai", "anthropic"} {
		f := openedOpenAI(t, 1, modelserver.Options{Answer: steps}, fmt.Sprintf(`, "api": %q, "cache_control": true`, api))
		_, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{inLevels("Agent > Person > Monk")}})
		must.Do(t, err)
		asks := f.server.Asks()
		last := asks[2]
		list := func(node, labels string) modelserver.Message {
			return modelserver.Message{Role: "user", Marked: true, Content: "Find the label below " + node + " that fits the text best. The only ones there are:\n" + labels +
				"\nIf none of them fits, the label is: none of these\nAnswer in the same form."}
		}
		want := []modelserver.Message{
			{Role: "system", Content: "Agent, Place or Work?"}, {Role: "user", Content: "Agent > Person > Monk", Marked: true},
			{Role: "assistant", Content: `{"label": "Agent"}`}, list("Agent", "- Person\n- Team\n"),
			{Role: "assistant", Content: `{"label": "Person"}`}, list("Agent/Person", "- Monk\n- Athlete\n"),
		}
		if d := cmp.Diff(want, last.Messages); d != "" {
			t.Errorf("%s: turns (-want +got):\n%s", api, d)
		}
		for i, labels := range [][]string{{"Agent", "Place", "Work"}, {"Person", "Team", "none of these"}, {"Monk", "Athlete", "none of these"}} {
			if !slices.Equal(asks[i].Labels, labels) || !cmp.Equal(asks[i].Messages, want[:2+2*i]) {
				t.Errorf("%s: request %d allows %q in %d turns, want %q", api, i, asks[i].Labels, len(asks[i].Messages), labels)
			}
		}
	}
}

// TestSamplesPartInLevels: samples that agree on a node share a request; the others have a request of their own.
func TestSamplesPartInLevels(t *testing.T) {
	ways := []string{"Agent > Team", "Agent > Person > Monk", "Work", "Agent > Team"}
	o := modelserver.Options{Answer: func(a modelserver.Ask, choice int) string {
		switch {
		case strings.HasPrefix(a.Text(), "This answer cannot be used"):
			return "Work"
		case len(a.Messages) == 2:
			return strings.Split(ways[choice], " > ")[0]
		case len(a.Messages) == 4:
			return []string{"Team", "Person", "Team"}[choice]
		}
		return "Monk"
	}}
	f := openedOpenAI(t, 4, o, `, "logprobs": true, "reasons": true`)
	prompt := inLevels("a text")
	prompt.Fields = []string{"reasoning", "label"}
	samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}})
	must.Do(t, err)
	if got := labels(samples); !slices.Equal(got, []string{"Agent/Team", "Agent/Person/Monk", "Work", "Agent/Team"}) {
		t.Errorf("answers %q", got)
	}
	if got := asked(f.server); !slices.Equal(got, []int{4, 3, 1}) {
		t.Errorf("choices that were asked for: %v", got)
	}
	// The server gives each token 0.9: Work has two, and Agent, Person and Monk have seven.
	deep, flat := samples[1].Answers[0], samples[2].Answers[0]
	if math.Abs(flat.Weight-.81) > 1e-9 || math.Abs(deep.Weight-math.Pow(.9, 7)) > 1e-9 {
		t.Errorf("three levels weigh %v, and one %v", deep.Weight, flat.Weight)
	}
	if deep.Explanation != "because\nbecause\nbecause" {
		t.Errorf("reasons %q", deep.Explanation)
	}
	samples, err = f.one(t, sdk.Item{Prompts: []sdk.Prompt{prompt}, Drawn: 4, Rejected: []sdk.Rejection{{Text: samples[1].Text, Reason: "no"}}})
	must.Do(t, err)
	turns := f.server.Asks()[3].Messages
	if len(turns) != 4 || turns[2].Content != `{"label": "Agent/Person/Monk"}` || !strings.HasSuffix(turns[3].Content, `"Agent","Place","Work".`) || len(samples) != 4 {
		t.Errorf("after a rejection %+v, %d samples", turns, len(samples))
	}
}

// TestForecastOfLevels compares the forecast for an item with the actual use, also if the first levels are cached.
func TestForecastOfLevels(t *testing.T) {
	for _, text := range []string{"Agent > Person > Monk", "Agent > Person > Athlete", "Place > River", "Work"} {
		f := openedOpenAI(t, 2, modelserver.Options{Answer: steps}, "")
		must.Do(t, f.host.KeepProfile(t.Context(), f.Address(), "tiny", []byte(`{"thinking": "no"}`)))
		item := sdk.Item{Prompts: []sdk.Prompt{inLevels(text)}}
		said, err := f.Forecast(item)
		must.Do(t, err)
		if said.Requests != 3 || said.MostRequests != 6 || said.Answers != 6 || f.server.Calls() > 0 {
			t.Errorf("%s: %+v, %d calls", text, said, f.server.Calls())
		}
		samples, err := f.one(t, item)
		must.Do(t, err)
		took := f.host.Spent(t)
		if said.Most.InputTokens < took.InputTokens || said.Most.OutputTokens < took.OutputTokens {
			t.Errorf("%s: at most %+v, and it took %+v", text, said.Most, took)
		}
		if in := said.Likely.InputTokens; f.server.Calls() == 3 && (in < took.InputTokens || in > 2*took.InputTokens+150) {
			t.Errorf("%s: %d tokens in were likely, and it took %d", text, in, took.InputTokens)
		}
		if again, err := f.Forecast(item); err != nil || again != (sdk.Forecast{Cached: 2 * f.server.Calls()}) {
			t.Errorf("%s: %+v is said of what is cached, error %v", text, again, err)
		}
		calls := f.server.Calls()
		f.host.Forget(samples[0].Key)
		rest, err := f.Forecast(item)
		if err != nil || rest.Cached != 2*calls-1 || calls > 1 && rest.Requests != 1 {
			t.Errorf("%s: of one that is missing %+v, error %v", text, rest, err)
		}
	}
}

// TestLevelsInBatches: each level is a separate batch.
func TestLevelsInBatches(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: steps})
	var items []sdk.Item
	for _, text := range []string{"Agent > Person > Monk", "Agent > Team", "Work", "Agent > -"} {
		items = append(items, sdk.Item{Prompts: []sdk.Prompt{inLevels(text)}})
	}
	got, _ := outcomes(t, server.URL, &apitest.Host{}, t.TempDir(), `, "batch": true`, items)
	want := []string{"Agent/Person/Monk", "Agent/Team", "Work", "Agent"}
	for i := range want {
		want[i] = strings.Join([]string{want[i], want[i], want[i]}, " ")
	}
	if d := cmp.Diff(want, got); d != "" || server.Batches() != 3 {
		t.Errorf("%d batches (-want +got):\n%s", server.Batches(), d)
	}
}

// TestLevelsWithoutATree: a text to continue, and a prompt that allows any label, are asked without levels.
func TestLevelsWithoutATree(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		prompt    sdk.Prompt
	}{
		"a text to continue": {`, "endpoint": "completions"`, sdk.Prompt{Text: "p", Labels: []string{"a/b"}, Levels: "/"}},
		"any label":          {"", sdk.Prompt{Text: "p", Levels: "/"}},
	} {
		f := openedOpenAI(t, 1, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "a/b" }}, test.arguments)
		samples, err := f.one(t, sdk.Item{Prompts: []sdk.Prompt{test.prompt}})
		if err != nil || !slices.Equal(labels(samples), []string{"a/b"}) || f.server.Calls() != 1 {
			t.Errorf("%s: %+v, %d requests, error %v", name, samples, f.server.Calls(), err)
		}
	}
}
