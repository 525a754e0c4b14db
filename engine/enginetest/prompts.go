package enginetest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// prompter writes the prompt of an item.
type prompter func(item sdk.Item, labels []string) []sdk.Prompt

func (p prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	prompts := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		prompts[i] = p(item, b.Labels)
	}
	return prompts, nil
}

type passages struct {
	Passages int `config:"passages" default:"20" doc:"Most passages of a prompt."`
}

// Answer is a prompt: a question with numbered passages, which the answer cites. Of a
// knowledge that is given as a whole it shows all.
func Answer() sdk.Stage {
	return sdk.PromptStage("answer", "Asks a question about passages.", func(_ context.Context, _ sdk.Setup, c passages) (sdk.Prompter, error) {
		return prompter(func(item sdk.Item, _ []string) []sdk.Prompt {
			shown, whole := item.Candidates, true
			for _, c := range shown {
				whole = whole && math.IsNaN(float64(c.Dense)) && math.IsNaN(float64(c.Lexical))
			}
			if !whole {
				shown = shown[:min(c.Passages, len(shown))]
			}
			if len(shown) == 0 {
				return nil
			}
			p, text := sdk.Prompt{None: "The passages do not answer this.", Passages: []string{}}, strings.Builder{}
			for i, c := range shown {
				fmt.Fprintf(&text, "[%d] %s\n", i+1, c.Text)
				p.Passages = append(p.Passages, c.ID)
			}
			p.Messages = []sdk.Message{
				{Role: sdk.MessageSystem, Text: "Answer from the passages.", Shared: true},
				{Role: sdk.MessageUser, Text: text.String(), Shared: whole},
				{Role: sdk.MessageUser, Text: item.Text},
			}
			return []sdk.Prompt{p}
		}), nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts))
}

type choice struct {
	None string `config:"none" doc:"The answer that no label fits."`
}

// Chat is a prompt: a question with the labels of the knowledge.
func Chat() sdk.Stage {
	return sdk.PromptStage("chat", "Asks for a label.", func(_ context.Context, _ sdk.Setup, c choice) (sdk.Prompter, error) {
		return prompter(func(item sdk.Item, labels []string) []sdk.Prompt {
			return []sdk.Prompt{{Text: item.Text, Labels: labels, None: c.None, Fields: []string{sdk.LabelProperty}}}
		}), nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnLabels))
}
