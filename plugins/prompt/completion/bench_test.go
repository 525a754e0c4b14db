package completion_test

import (
	"fmt"
	"testing"

	"github.com/racflow/racflow/plugins/prompt/completion"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkPrompt writes the prompt of an item with 20 neighbours, 10 random
// examples and 150 labels, without a budget and with one that not all of the
// examples fit into.
func BenchmarkPrompt(b *testing.B) {
	var item sdk.Item
	labels := make([]string, 150)
	for i := range labels {
		labels[i] = fmt.Sprint("some_label_", i)
	}
	for i := range 60 {
		c := sdk.Candidate{Text: fmt.Sprintf("could you tell me how much money is left on account %d", i), Label: labels[i]}
		item.Candidates = append(item.Candidates, c)
		if i < 10 {
			item.Random = append(item.Random, c)
		}
	}
	for _, config := range []string{`{}`, `{"max_tokens": 850}`} {
		stage, err := completion.Stage().Open(b.Context(), sdk.Setup{}, []byte(config))
		must.Do(b, err)
		b.Run(config, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stage.(sdk.Prompter).Prompt(b.Context(), sdk.Batch{Labels: labels, Items: []sdk.Item{item}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
