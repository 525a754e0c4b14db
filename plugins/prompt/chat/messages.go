package chat

import (
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// byHand is the reasoning in the turn of a labelled neighbour.
const byHand = "labelled by hand"

func (p *prompter) messages(system string, shots []fewshot.Example, text string) []sdk.Message {
	messages := make([]sdk.Message, 0, 2*len(shots)+2)
	messages = append(messages, sdk.Message{Role: sdk.MessageSystem, Text: system})
	for _, s := range shots {
		messages = append(messages,
			sdk.Message{Role: sdk.MessageUser, Text: s.Text},
			sdk.Message{Role: sdk.MessageAssistant, Text: p.object(s.Label)})
	}
	return append(messages, sdk.Message{Role: sdk.MessageUser, Text: strings.TrimSpace(text)})
}

// object is the answer with a label, its properties in the order of the
// fields.
func (p *prompter) object(label string) string {
	var out strings.Builder
	for i, field := range p.fields {
		value := fewshot.JSON(label)
		switch field {
		case reasoningProperty:
			value = fewshot.JSON(byHand)
		case sdk.LabelsProperty:
			value = "[" + value + "]"
		}
		out.WriteString([]string{"{", ", "}[min(i, 1)] + fewshot.JSON(field) + ": " + value)
	}
	return out.String() + "}"
}
