package golden

import (
	"strings"

	"github.com/racflow/racflow/sdk"
)

var texts = []string{"Book a flight from Zürich to 東京, please!", "what's my account's balance", "my card was lost", ""}

const prose = `# Cards

A lost card is blocked at once. Call us, or use the app. A new one comes within five days; it costs 10 francs.

## Abroad

Dr. Meier paid with it in Japan, e.g. in shops. It worked.

- blocked cards stay blocked
- found cards can be sent back

| fee | francs |
|-----|--------|
| new card | 10 |
`

const source = `package card

import "errors"

// Block blocks a card.
func Block(id string) error {
	if id == "" {
		return errors.New("no card")
	}
	return nil
}

type Card struct {
	ID string
}

func (c Card) Lost() bool { return c.ID == "" }
`

// documents are prose and source code, long enough to be cut.
func documents() []sdk.Document {
	return []sdk.Document{
		{ID: "help/cards.md", Text: strings.Repeat(prose, 12), Meta: sdk.Meta{"path": "help/cards.md", "title": "Cards", "format": "markdown"}},
		{ID: "card.go", Text: strings.Repeat(source, 12), Meta: sdk.Meta{"path": "card.go", "format": "code"}},
	}
}

func passages() []sdk.Passage {
	d := &documents()[0]
	at := strings.Index(d.Text, "Dr. Meier")
	return []sdk.Passage{
		{Document: d, Chunk: sdk.Chunk{Start: 0, End: 60, Meta: sdk.Meta{"headings": "Cards"}}},
		{Document: d, Chunk: sdk.Chunk{Start: at, End: at + 50, Meta: sdk.Meta{"headings": "Cards > Abroad"}}},
	}
}

// batch is two items with all that stages above may have written; the second has nothing.
func batch() sdk.Batch {
	candidates := []sdk.Candidate{
		{ID: "1", Text: "my card is gone", Label: "card_lost", Score: .9, Dense: .8, Lexical: 4, Meta: sdk.Meta{"title": "Cards"}},
		{ID: "2", Text: "send me a new card", Label: "card_new", Score: .7, Dense: .7, Lexical: 3, Context: "Cards > Orders"},
		{ID: "3", Text: "somebody stole my card", Label: "card_lost", Score: .6, Dense: .65, Lexical: 2.5},
		{ID: "4", Text: "what do I have left", Label: "balance", Score: .2, Dense: .3, Lexical: 0},
	}
	answers := func(labels ...string) []sdk.Sample {
		var all []sdk.Sample
		for i, label := range labels {
			all = append(all, sdk.Sample{Voter: []string{"knn", "llm"}[min(i, 1)], Answers: []sdk.Answer{
				{Label: label, Weight: .7, Accepted: true}, {Label: "balance", Weight: .3, Accepted: i == 0},
			}})
		}
		return all
	}
	return sdk.Batch{
		Labels: []string{"balance", "card_lost", "card_new"},
		Items: []sdk.Item{
			{
				ID: "a", Text: "my card was lost", Meta: sdk.Meta{"lang": "en"}, Vector: []float32{.6, .8}, Candidates: candidates, Random: candidates[3:],
				Prototypes: []sdk.Candidate{{Label: "card_lost", Dense: .8}, {Label: "card_new", Dense: .75}, {Label: "balance", Dense: .1}},
				Samples:    answers("card_lost", "card_new", "card_new"),
			},
			{ID: "b", Text: "hello"},
		},
	}
}
