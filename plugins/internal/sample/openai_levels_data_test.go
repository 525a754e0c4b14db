package sample

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/prompt"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// classes is a sample of DBpedia in 219 classes, below 70 and 9 higher ones: text, class, and the two
// levels above.
const classes = "../../../../shared/data/dbpedia_classes/"

func classesOf(t *testing.T, file string) (rows []sdk.Candidate) {
	t.Helper()
	text, err := os.ReadFile(classes + file)
	if err != nil {
		t.Skip("the data is not here: ", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		rows = append(rows, sdk.Candidate{Text: f[0], Label: strings.Join([]string{f[2], f[3], f[1]}, "/")})
	}
	return rows[1:]
}

// TestLevelsTakeLess asks about 100 texts among all 219 classes, at once and level by level. Level by level, fewer
// tokens are sent, and the service has to compute far fewer.
func TestLevelsTakeLess(t *testing.T) {
	must.NoRace(t)
	rows, known := classesOf(t, "test_public.tsv")[:100], classesOf(t, "train.tsv")
	labels := map[string]bool{}
	for _, row := range known {
		labels[row.Label] = true
	}
	answers := map[string]string{}
	var items []sdk.Item
	for i, row := range rows {
		answers[row.Text] = row.Label
		items = append(items, sdk.Item{ID: row.Text, Text: row.Text, Candidates: known[5*i : 5*i+5]})
	}
	script := func(a modelserver.Ask, _ int) string {
		path, level := "", 0
		for _, m := range a.Messages {
			path = cmp.Or(path, answers[m.Content])
			if strings.HasPrefix(m.Content, "Find the label below") {
				level++
			}
		}
		if len(a.Labels) > 70 {
			return path
		}
		return strings.Split(path, "/")[level]
	}
	used := func(config string) sdk.Usage {
		opened, err := prompt.Chat().Open(t.Context(), sdk.Setup{Labels: sdk.LabelForm{Levels: "/"}}, []byte(config))
		must.Do(t, err)
		prompts, err := opened.(sdk.Prompter).Prompt(t.Context(), sdk.Batch{Items: items, Labels: slices.Sorted(maps.Keys(labels))})
		must.Do(t, err)
		f := openedOpenAI(t, 1, modelserver.Options{Answer: script}, "")
		for i := range items {
			samples, err := f.one(t, sdk.Item{ID: items[i].ID, Prompts: prompts[i]})
			must.Do(t, err)
			if got := samples[0].Answers[0].Label; got != answers[items[i].ID] {
				t.Errorf("%q, want %q", got, answers[items[i].ID])
			}
		}
		used := f.host.Spent(t)
		t.Logf("%s: %d requests, %d tokens in, %d of them cached, %d out", config, f.server.Calls(), used.InputTokens, used.CachedTokens, used.OutputTokens)
		return used
	}
	for _, more := range []string{`"shots": 0`, `"shots": 5`, `"shots": 0, "reasoning": false`} {
		flat, levels := used(`{"labels": "all", `+more+`}`), used(`{"labels": "all", `+more+`, "levels": true}`)
		if computed := func(u sdk.Usage) uint64 { return u.InputTokens - u.CachedTokens }; computed(levels) >= computed(flat) {
			t.Errorf("%s: by level %+v, at once %+v", more, levels, flat)
		}
	}
}
