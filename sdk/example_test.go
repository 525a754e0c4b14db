package sdk_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// opened opens a stage as the engine does in the stage's own process, with a config.
func opened[T any](s sdk.Stage, config string) T {
	stage, err := s.Open(context.Background(), sdk.Setup{Samples: 1}, []byte(config))
	if err != nil {
		log.Fatal(err)
	}
	return stage.(T)
}

// batch is one item with a text.
func batch(text string) sdk.Batch { return sdk.Batch{Items: []sdk.Item{{ID: "1", Text: text}}} }

type lines struct{}

func (lines) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	all := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		start := 0
		for line := range strings.Lines(d.Text) {
			all[i] = append(all[i], sdk.Chunk{Start: start, End: start + len(line)})
			start += len(line)
		}
	}
	return all, nil
}

func ExampleChunkStage() {
	stage := sdk.ChunkStage("lines", "Makes a chunk of each line.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Chunker, error) { return lines{}, nil })
	d := sdk.Document{ID: "a.txt", Text: "one\ntwo\n"}
	chunks, err := opened[sdk.Chunker](stage, `{}`).Chunk(context.Background(), []sdk.Document{d})
	for _, c := range chunks[0] {
		fmt.Printf("%q\n", d.Text[c.Start:c.End])
	}
	fmt.Println(err)
	// Output:
	// "one\n"
	// "two\n"
	// <nil>
}

type folder struct{}

func (folder) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	all := make([]sdk.Addition, len(passages))
	for i, p := range passages {
		path, _ := p.Document.Meta["path"].(string)
		all[i].Context, _, _ = strings.Cut(path, "/")
	}
	return all, nil
}

func ExampleEnrichStage() {
	stage := sdk.EnrichStage("folder", "Adds the folder that a document is in.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Enricher, error) { return folder{}, nil })
	d := &sdk.Document{Text: "Open the port.", Meta: sdk.Meta{"path": "guide/install.md"}}
	additions, err := opened[sdk.Enricher](stage, `{}`).Enrich(context.Background(), []sdk.Passage{{Document: d, Chunk: sdk.Chunk{End: len(d.Text)}}})
	fmt.Println(additions[0].Context, err)
	// Output: guide <nil>
}

type vowels struct{}

func (vowels) Dimension() int { return 2 }

func (vowels) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = make([]float32, 2) // of norm 1, or all zero
		if text != "" && strings.ContainsRune("aeiou", rune(text[0])) {
			all[i][0] = 1
		} else if text != "" {
			all[i][1] = 1
		}
	}
	return all, nil
}

func ExampleEmbedStage() {
	stage := sdk.EmbedStage("vowels", "Tells first letters apart.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) { return vowels{}, nil })
	fmt.Println(opened[sdk.Embedder](stage, `{}`).Embed(context.Background(), sdk.RolePassage, []string{"apple", "pear", ""}))
	// Output: [[1 0] [0 1] [0 0]] <nil>
}

// memory keeps entries until its process ends. Methods that the example leaves out come from the
// embedded interface.
type memory struct {
	sdk.Store
	entries map[string]sdk.Entry
}

func (m *memory) Open(context.Context, string, sdk.Schema) (sdk.Collection, error) {
	return sdk.Collection{Entries: len(m.entries)}, nil
}

func (m *memory) Put(_ context.Context, _ string, entries []sdk.Entry) error {
	for _, e := range entries {
		m.entries[e.ID] = e
	}
	return nil
}

func (m *memory) Search(_ context.Context, _ string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	all := make([]sdk.Hits, len(queries))
	for i, q := range queries {
		for _, id := range slices.Sorted(maps.Keys(m.entries)) {
			hit := sdk.Hit{ID: id, Lexical: sdk.Unscored}
			for d, x := range m.entries[id].Vector {
				hit.Dense += x * q.Vector[d]
			}
			all[i].Dense = append(all[i].Dense, hit)
		}
		slices.SortStableFunc(all[i].Dense, func(a, b sdk.Hit) int { return int(b.Dense - a.Dense) })
		all[i].Dense = all[i].Dense[:min(s.NumCandidates, len(all[i].Dense))]
	}
	return all, nil
}

func ExampleStoreStage() {
	stage := sdk.StoreStage("memory", "Keeps entries in memory.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Store, error) {
			return &memory{entries: map[string]sdk.Entry{}}, nil
		})
	ctx, store := context.Background(), opened[sdk.Store](stage, `{}`)
	if _, err := store.Open(ctx, "fruit", sdk.Schema{Dimension: 2}); err != nil {
		log.Fatal(err)
	}
	if err := store.Put(ctx, "fruit", []sdk.Entry{{ID: "apple", Vector: []float32{1, 0}}, {ID: "pear", Vector: []float32{0, 1}}}); err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, "fruit", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 1}, []sdk.Query{{Vector: []float32{0, 1}}})
	fmt.Println(found[0].Dense[0].ID, err)
	// Output: pear <nil>
}

type shortest struct{}

func (shortest) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	all := make([][]sdk.Ranked, len(b.Items))
	for i, item := range b.Items {
		for at, c := range item.Candidates {
			all[i] = append(all[i], sdk.Ranked{Candidate: at, Score: -float32(len(c.Text))})
		}
		slices.SortStableFunc(all[i], func(a, b sdk.Ranked) int { return int(b.Score - a.Score) })
	}
	return all, nil
}

func ExampleRerankStage() {
	stage := sdk.RerankStage("shortest", "Prefers short texts.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Reranker, error) { return shortest{}, nil }, sdk.Reads(sdk.ColumnCandidateTexts))
	b := batch("port")
	b.Items[0].Candidates = []sdk.Candidate{{Text: "a long text"}, {Text: "short"}}
	fmt.Println(opened[sdk.Reranker](stage, `{}`).Rerank(context.Background(), b))
	// Output: [[{1 -5} {0 -11}]] <nil>
}

// promptConfig holds the arguments of a config block; its tags are checked before any process starts.
type promptConfig struct {
	Question string `config:"question,required" doc:"What is asked about the text."`
}

func (c promptConfig) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	all := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		all[i] = []sdk.Prompt{{Text: c.Question + "\n" + item.Text, Labels: b.Labels}}
	}
	return all, nil
}

func ExamplePromptStage() {
	stage := sdk.PromptStage("plain", "Asks a question about the text.",
		func(_ context.Context, _ sdk.Setup, c promptConfig) (sdk.Prompter, error) { return c, nil }, sdk.Reads(sdk.ColumnText, sdk.ColumnLabels))
	prompts, err := opened[sdk.Prompter](stage, `{"question": "What is it?"}`).Prompt(context.Background(), batch("a red apple"))
	fmt.Println(prompts[0][0].Text, err)
	// Output:
	// What is it?
	// a red apple <nil>
}

type words struct{}

func (words) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		for _, label := range b.Labels {
			if strings.Contains(item.Text, label) {
				all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: label, Weight: 1}}}}
			}
		} // without such a label, the voter abstains
	}
	return all, nil
}

func ExampleSampleStage() {
	stage := sdk.SampleStage("words", "Votes for the label that stands in the text.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return words{}, nil }, sdk.Reads(sdk.ColumnText, sdk.ColumnLabels))
	b := batch("a red apple")
	b.Labels = []string{"apple", "pear"}
	samples, err := opened[sdk.Sampler](stage, `{}`).Sample(context.Background(), b)
	fmt.Println(samples[0][0].Answers[0].Label, err)
	// Output: apple <nil>
}

type most struct{}

func (most) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	all := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		if shares := ballot.Mean(item.Samples, nil); len(shares) > 0 {
			all[i] = sdk.Verdict{Answer: shares[0].Label, Agreement: ballot.Agreement(shares)}
		} else {
			all[i].Reason = "nobody voted"
		}
	}
	return all, nil
}

func ExampleElectStage() {
	stage := sdk.ElectStage("most", "Takes the label with the largest share of the votes.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Elector, error) { return most{}, nil })
	vote := func(voter, label string) sdk.Sample {
		return sdk.Sample{Voter: voter, Answers: []sdk.Answer{{Label: label, Weight: 1, Accepted: true}}}
	}
	b := batch("a red apple")
	b.Items[0].Samples = []sdk.Sample{vote("knn", "apple"), vote("llm", "apple"), vote("words", "pear")}
	verdicts, err := opened[sdk.Elector](stage, `{}`).Elect(context.Background(), b)
	fmt.Printf("%s %.2f %v\n", verdicts[0].Answer, verdicts[0].Agreement, err)
	// Output: apple 0.67 <nil>
}
