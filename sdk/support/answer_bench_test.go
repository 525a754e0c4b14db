package support_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// BenchmarkRead reads answers to a prompt with 150 labels.
func BenchmarkRead(b *testing.B) {
	p := sdk.Prompt{Text: "?"}
	for i := range 150 {
		p.Labels = append(p.Labels, fmt.Sprintf("label_number_%c%c", 'a'+i/26, 'a'+i%26))
	}
	for name, text := range map[string]string{
		"exact": "label_number_cd", "bold": "**label_number_cd**", "prefix": "Label: label_number_cd", "JSON": `{"label": "label_number_cd"}`,
		"reasons": strings.Repeat("The user says that a card is gone. ", 20) + "\nLabel: label_number_cd", "none": "I cannot say",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				support.ReadAnswer(text, p, support.AnswerOptions{})
			}
		})
	}
}
