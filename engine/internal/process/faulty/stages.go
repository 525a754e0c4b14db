package faulty

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Stages returns the stages of the package, one of each kind, all named "faulty". Its store wraps
// store, which keeps its entries on disk, so that they survive the end of the process.
func Stages(store sdk.Stage) []sdk.Stage {
	const name, doc = "faulty", "Does what a text asks for, right or wrong."
	return []sdk.Stage{
		sdk.ChunkStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Chunker, error) {
			return chunker{open(sdk.KindChunk, c)}, nil
		}),
		sdk.EnrichStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Enricher, error) {
			return enricher{open(sdk.KindEnrich, c)}, nil
		}),
		sdk.EmbedStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Embedder, error) {
			return embedder{open(sdk.KindEmbed, c)}, nil
		}),
		sdk.StoreStage(name, doc, func(ctx context.Context, setup sdk.Setup, c config) (sdk.Store, error) {
			below, err := store.Open(ctx, setup, nil)
			if err != nil {
				return nil, err
			}
			return keeper{below.(sdk.Store), open(sdk.KindStore, c)}, nil
		}),
		sdk.RerankStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Reranker, error) {
			return reranker{open(sdk.KindRerank, c)}, nil
		}, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates)),
		sdk.PromptStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Prompter, error) {
			return prompter{open(sdk.KindPrompt, c)}, nil
		}, sdk.Reads(sdk.ColumnText)),
		sdk.SampleStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Sampler, error) {
			return sampler{open(sdk.KindSample, c)}, nil
		}, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnPrompts)),
		sdk.ElectStage(name, doc, func(_ context.Context, _ sdk.Setup, c config) (sdk.Elector, error) {
			return elector{open(sdk.KindElect, c)}, nil
		}, sdk.Reads(sdk.ColumnText, sdk.ColumnSamples)),
	}
}

// hashOf returns a number from 0 to 1 that depends only on a text.
func hashOf(text string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return float64(h.Sum32()) / math.MaxUint32
}

func textsOf(b sdk.Batch) []string {
	texts := make([]string, len(b.Items))
	for i := range b.Items {
		texts[i] = b.Items[i].Text
	}
	return texts
}

// each commits the faults that the texts request, then returns the result of each row.
func each[T any](ctx context.Context, f *faulty, texts []string, one func(i int) T) ([]T, error) {
	if err := f.work(ctx, texts); err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for i := range all {
		all[i] = one(i)
	}
	return sized(all, f.count(texts)), nil
}

type chunker struct{ *faulty }

func (f chunker) Chunk(ctx context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	texts := make([]string, len(documents))
	for i := range documents {
		texts[i] = documents[i].Text
	}
	return each(ctx, f.faulty, texts, func(i int) []sdk.Chunk {
		half := strings.IndexByte(texts[i], ' ') // all texts have a space
		return []sdk.Chunk{{End: half}, {Start: half + 1, End: len(texts[i])}}
	})
}

type enricher struct{ *faulty }

func (f enricher) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	texts := make([]string, len(passages))
	for i := range passages {
		texts[i] = passages[i].Text()
	}
	return each(ctx, f.faulty, texts, func(i int) sdk.Addition {
		return sdk.Addition{Context: fmt.Sprintf("about %.6f", hashOf(texts[i]))}
	})
}

type embedder struct{ *faulty }

func (embedder) Dimension() int { return 2 }

func (f embedder) Embed(ctx context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	return each(ctx, f.faulty, texts, func(i int) []float32 {
		sin, cos := math.Sincos(hashOf(texts[i]))
		return []float32{float32(f.number(texts[i], sin)), float32(cos)}
	})
}

// keeper commits the faults of the entries to put and of the queries to search for.
type keeper struct {
	sdk.Store
	*faulty
}

func (f keeper) Put(ctx context.Context, collection string, entries []sdk.Entry) error {
	texts := make([]string, len(entries))
	for i := range entries {
		texts[i] = entries[i].Text
	}
	if err := f.work(ctx, texts); err != nil {
		return err
	}
	return f.Store.Put(ctx, collection, entries)
}

func (f keeper) Search(ctx context.Context, collection string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	texts := make([]string, len(queries))
	for i := range queries {
		texts[i] = queries[i].Text
	}
	if err := f.work(ctx, texts); err != nil {
		return nil, err
	}
	return f.Store.Search(ctx, collection, s, queries)
}

type reranker struct{ *faulty }

func (f reranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	texts := textsOf(b)
	return each(ctx, f.faulty, texts, func(i int) []sdk.Ranked {
		ranked := make([]sdk.Ranked, len(b.Items[i].Candidates))
		for j := range ranked {
			ranked[j] = sdk.Ranked{Candidate: j, Score: float32(f.number(texts[i], float64(len(ranked)-j)))}
		}
		switch f.asked(texts[i]) {
		case "range":
			ranked[0].Candidate = len(ranked)
		case "twice":
			ranked[0].Candidate = 1
		}
		return ranked
	})
}

type prompter struct{ *faulty }

func (f prompter) Prompt(ctx context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	texts := textsOf(b)
	return each(ctx, f.faulty, texts, func(i int) []sdk.Prompt { return []sdk.Prompt{{Text: "label of: " + texts[i]}} })
}

type sampler struct{ *faulty }

func (f sampler) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	texts := textsOf(b)
	return each(ctx, f.faulty, texts, func(i int) []sdk.Sample {
		answers := []sdk.Answer{{Label: "other", Weight: .25}}
		if c := b.Items[i].Candidates; len(c) > 0 {
			answers = append(answers, sdk.Answer{Label: c[0].Label, Weight: f.number(texts[i], .5+hashOf(texts[i]))})
		}
		return []sdk.Sample{{Answers: answers}}
	})
}

type elector struct{ *faulty }

func (f elector) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	texts := textsOf(b)
	return each(ctx, f.faulty, texts, func(i int) sdk.Verdict {
		var best sdk.Answer
		for _, s := range b.Items[i].Samples {
			for _, a := range s.Answers {
				if a.Weight > best.Weight {
					best = a
				}
			}
		}
		return sdk.Verdict{Answer: best.Label, Agreement: f.number(texts[i], hashOf(texts[i]))}
	})
}
