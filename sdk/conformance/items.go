package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// labels are those of all items.
var labels = []string{"card_lost", "pin_change", "weather"}

// items makes n items with all columns, among them rows without candidates,
// rows without voters and texts that are not UTF-8.
func items(n int) sdk.Batch {
	b := sdk.Batch{Labels: slices.Clone(labels), Items: make([]sdk.Item, n)}
	for i := range b.Items {
		b.Items[i] = item(i)
	}
	return b
}

func item(i int) sdk.Item {
	it := sdk.Item{
		ID: fmt.Sprint("item-", i), Text: fmt.Sprint("my card is gone ", i), Vector: []float32{1, 0, 0},
		Meta: sdk.Meta{"channel": "chat"}, Prompts: []sdk.Prompt{{Text: "which label?"}},
	}
	switch i % 4 {
	case 1:
		return it // a row for which nothing was found
	case 2:
		it.Text = "caf\xe9"
	case 3:
		it.Text = ""
	}
	for j := range 12 {
		c := sdk.Candidate{
			ID: fmt.Sprint("entry-", j), Text: fmt.Sprint("example ", j), Label: labels[j%len(labels)],
			Score: 1 - float32(j)/20, Dense: .9 - float32(j)/20, Lexical: sdk.Unscored,
		}
		it.Candidates = append(it.Candidates, c)
		if j < len(labels) {
			it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: c.Label, Dense: c.Dense})
			it.Random = append(it.Random, c)
		}
	}
	it.Samples = []sdk.Sample{
		{Voter: "neighbours", Answers: []sdk.Answer{{Label: labels[i%3], Weight: .6, Accepted: true}, {Label: labels[(i+1)%3], Weight: .4, Accepted: i%8 != 0}}},
		{Voter: "prototype", Answers: []sdk.Answer{{Label: labels[(i+1)%3], Weight: .5, Accepted: true}}},
		{Voter: "silent"},
	}
	return it
}

// scripts are items whose texts, ids, labels and metadata are of many scripts.
func scripts() sdk.Batch {
	texts := []string{
		"Größe, naïveté, Ελληνικά, Кириллица", "我昨天丢了卡。你呢？", "カードをなくした", "บัตรเครดิตหาย", "أين بطاقتي؟ \u202eabc\u202c", "שלום",
		"e\u0301a\u0308\u0323 \u200b\ufeff", "👩‍👩‍👧‍👦🇩🇪 🏳️‍🌈", "\x00 a zero byte", "\u2028\u0085\r\n\t", "\U0010ffff\uffff", "<b>&amp;</b> %s {{.}} ${x} \\ \"'`",
		strings.Repeat("a long text ", 3000), strings.Repeat("ж", 40_000),
	}
	b := items(len(texts))
	b.Labels = slices.Clone(texts[:6])
	slices.Sort(b.Labels)
	for i := range b.Items {
		it := &b.Items[i]
		it.ID, it.Text, it.Meta = fmt.Sprint(texts[i][:min(len(texts[i]), 40)], i), texts[i], sdk.Meta{texts[i%6]: texts[i%12]}
		it.Prompts = []sdk.Prompt{{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: texts[i]}}, Labels: b.Labels}}
		for j := range it.Candidates {
			it.Candidates[j].Text, it.Candidates[j].Label = texts[(i+j)%len(texts)], b.Labels[j%6]
		}
	}
	return b
}

// extremes are items whose numbers are at their bounds, or missing.
func extremes() sdk.Batch {
	b := items(8)
	for i := range b.Items {
		it := &b.Items[i]
		it.Vector = []float32{0, 0, 0}
		for j := range it.Candidates {
			c := &it.Candidates[j]
			switch i % 3 {
			case 0: // as after a lexical search that found nothing worth a score
				c.Score, c.Dense, c.Lexical = 0, sdk.Unscored, sdk.Unscored
			case 1:
				c.Score, c.Dense, c.Lexical = float32(math.Copysign(1e30, float64(j%2)-1)), -1, 1e30
			case 2:
				c.Score, c.Dense, c.Lexical = 1e-38, 1, 0
			}
		}
		for j := range it.Samples {
			for k := range it.Samples[j].Answers {
				it.Samples[j].Answers[k].Weight = []float64{0, 1e100, 1e-300}[(i+j+k)%3]
			}
		}
	}
	return b
}
