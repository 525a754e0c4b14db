package apitest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// Asking is Check for a stage that asks a language model: it also compares the requests.
func Asking(t *testing.T, stage sdk.Stage, want string) {
	t.Helper()
	server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string {
		return "<think>Well.</think> 1. a lost card\n2. Who blocks it, and when?\n3. A lost card"
	}})
	config := fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL)
	open, err := stage.Open(t.Context(), sdk.Setup{Block: "golden", Samples: 3, Host: &Host{}}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, open)
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, a := range server.Asks() {
		asked = append(asked, a.Whole())
	}
	slices.Sort(asked)
	Compare(t, stage, []any{asked, out}, want)
}

// This file tests that the outputs of built-in stages stay the same. A test fails when a stage gives another output
// for the same input and its sdk.Revision was not raised. Knowledge and runs recognise the change by the revision.
//
// Numbers are rounded, since processors differ in their last bits.

// CheckReply opens a stage and compares its output for a fixed input with want: the stage's revision and a hash of
// the output.
func CheckReply(t *testing.T, stage sdk.Stage, config, want string) {
	t.Helper()
	open, err := stage.Open(t.Context(), sdk.Setup{Block: "golden", Samples: 3}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, open)
	if err != nil {
		t.Fatal(err)
	}
	Compare(t, stage, out, want)
}

// Compare does the same for an output that the test got from the stage.
func Compare(t testing.TB, stage sdk.Stage, out any, want string) {
	t.Helper()
	revision := stage.Fingerprint(nil)
	got := revision + " " + hash(t, out)
	was, _, _ := strings.Cut(want, " ")
	switch {
	case got == want:
	case revision == was:
		t.Errorf("%s gives another output than at revision %s: where that is intended, raise revision (sdk.Revision) and write the new hash here, %s", stage.Name, was, got)
	default:
		t.Errorf("%s is at revision %s: write %q here", stage.Name, revision, got)
	}
}

// output returns a stage's output for the input of its kind.
func output(t *testing.T, stage any) (any, error) {
	ctx := t.Context()
	switch s := stage.(type) {
	case sdk.Chunker:
		return s.Chunk(ctx, documents())
	case sdk.Enricher:
		return s.Enrich(ctx, passages())
	case sdk.Embedder:
		return s.Embed(ctx, sdk.RolePassage, texts)
	case sdk.Reranker:
		return s.Rerank(ctx, batch())
	case sdk.Prompter:
		return s.Prompt(ctx, batch())
	case sdk.Sampler:
		return s.Sample(ctx, batch())
	case sdk.Elector:
		return s.Elect(ctx, batch())
	}
	t.Fatalf("a %T has no output to compare", stage)
	return nil, nil
}

// hash returns the hash of a value's JSON, with rounded numbers.
func hash(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(rounded(any)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// rounded returns a decoded value with its numbers rounded to four decimals.
func rounded(v any) any {
	switch v := v.(type) {
	case float64:
		return math.Round(v*1e4)/1e4 + 0 // no negative zero
	case []any:
		for i := range v {
			v[i] = rounded(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rounded(v[k])
		}
	}
	return v
}

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

// documents returns prose and source code, long enough to be cut.
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

// batch returns two items: one with everything that earlier stages may have written, and one with nothing.
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
