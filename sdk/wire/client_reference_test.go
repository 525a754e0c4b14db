package wire_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/sdk"
)

type shelfConfig struct {
	referenceConfig
	Collection string `config:"collection" doc:"One that another program makes."`
}

type referenceConfig struct {
	Precision string  `config:"precision" one_of:"float32,int8" doc:"Of the vectors; chosen by the processor where it is not given."`
	Sharpness float64 `config:"sharpness" default:"1" above:"0" doc:"How much the first candidate counts."`
}

// reference has a stage of each kind, and uses every feature of the protocol.
var reference = sdk.Plugin{Name: "reference", Version: "1.0.0", Stages: []sdk.Stage{
	sdk.ChunkStage("halves", "Cuts a document in two.", open[sdk.Chunker], sdk.Revision("1")),
	sdk.EnrichStage("place", "Says where a passage stands.", open[sdk.Enricher]),
	sdk.EmbedStage("length", "Embeds the length of a text.", open[sdk.Embedder], sdk.Fits(sdk.ColumnText), sdk.PreferBatch(64)),
	sdk.StoreStage("shelf", "Keeps two entries.", func(context.Context, sdk.Setup, shelfConfig) (sdk.Store, error) { return &shelf{}, nil },
		sdk.Filters(), sdk.Attaches("collection")),
	sdk.RerankStage("reverse", "Turns the order round.", open[sdk.Reranker]),
	sdk.PromptStage("ask", "Asks for one of the labels.", open[sdk.Prompter], sdk.Reads(sdk.ColumnText, sdk.ColumnLabels)),
	sdk.SampleStage("first", "Votes for the first candidate.", open[sdk.Sampler], sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates), sdk.Network(), sdk.Pends(),
		sdk.Validates(func(c referenceConfig) error {
			if c.Precision == "int8" && c.Sharpness > 9 {
				return &sdk.ArgumentError{Argument: "sharpness", Err: errors.New("too much for int8: at most 9")}
			}
			return nil
		})),
	sdk.ElectStage("most", "Takes the first answer.", open[sdk.Elector]),
}}

func open[T any](_ context.Context, s sdk.Setup, _ referenceConfig) (stage T, err error) {
	var all any = everything{}
	if s.Block == "length" {
		all = &fitter{everything{}, s.StateDir}
	}
	return all.(T), nil
}

// everything is a stage of each kind but store.
type everything struct{}

// fitter is an embedder that learns.
type fitter struct {
	everything
	dir string
}

func (everything) Fingerprint() string      { return "of the model" }
func (everything) Dimension() int           { return 2 }
func (everything) Random() sdk.Draw         { return sdk.Draw{Count: 2, Parts: 2, Shared: true, Seed: 7} }
func (everything) Resolved() map[string]any { return map[string]any{"precision": "float32"} }

func (everything) Chunk(_ context.Context, documents []sdk.Document) ([][]sdk.Chunk, error) {
	out := make([][]sdk.Chunk, len(documents))
	for i, d := range documents {
		if half := len(d.Text) / 2; half > 0 {
			out[i] = []sdk.Chunk{{End: half, Meta: sdk.Meta{"part": 1.0}}, {Start: half, End: len(d.Text), Header: sdk.Span{End: 2}}}
		}
	}
	return out, nil
}

func (everything) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	out := make([]sdk.Addition, len(passages))
	for i, p := range passages {
		out[i] = sdk.Addition{Context: fmt.Sprintf("%s from byte %d", p.Document.ID, p.Start), Terms: []string{"what is " + p.Text()}}
	}
	return out, nil
}

func (everything) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if out[i] = []float32{0, 0}; text != "" {
			out[i] = []float32{.6, .8}
		}
	}
	return out, nil
}

func (f *fitter) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	learnt := ""
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			learnt += row.Text + " is " + row.Label + "\n"
		}
	}
	return os.WriteFile(filepath.Join(f.dir, "learnt"), []byte(learnt), 0o600)
}

func (everything) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out := make([][]sdk.Ranked, len(b.Items))
	for i, it := range b.Items {
		for j := len(it.Candidates) - 1; j >= 0; j-- {
			out[i] = append(out[i], sdk.Ranked{Candidate: j, Score: float32(j)})
		}
	}
	return out, nil
}

func (everything) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	out := make([][]sdk.Prompt, len(b.Items))
	for i, it := range b.Items {
		out[i] = []sdk.Prompt{{Labels: b.Labels, None: "none", Fields: []string{"label"}, Messages: []sdk.Message{
			{Role: sdk.MessageSystem, Text: "Answer with a label.", Shared: true}, {Role: sdk.MessageUser, Text: it.Text},
		}}}
	}
	return out, nil
}

// Sample votes, fails rows without candidates, and takes its time for the text "later".
func (everything) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	if b.Items[0].Text == "later" {
		return nil, &sdk.Pending{Handle: "batch-17", PollAfter: time.Hour, Note: "2 of 9 rows are done"}
	}
	out, failed := make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{}
	for i, it := range b.Items {
		if len(it.Candidates) == 0 {
			failed[i] = sdk.Transient(errors.New("there is nothing to vote for"), time.Second)
			continue
		}
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Candidates[0].Label, Weight: .75}}, Usage: sdk.Usage{InputTokens: 9, OutputTokens: 1}, Distance: .5}}
	}
	return out, failed
}

func (everything) CollectSamples(_ context.Context, handle string, b sdk.Batch) ([][]sdk.Sample, error) {
	out := make([][]sdk.Sample, len(b.Items))
	for i, it := range b.Items {
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: handle + " of " + it.ID, Weight: 1}}}}
	}
	return out, nil
}

func (everything) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	out := make([]sdk.Verdict, len(b.Items))
	for i, it := range b.Items {
		if out[i].Reason = "nobody has voted"; len(it.Samples) > 0 {
			label := it.Samples[0].Answers[0].Label
			out[i] = sdk.Verdict{Answer: label, Agreement: 1, Confidence: .75, Unknown: .25, Labels: []sdk.LabelConfidence{{Label: label, Confidence: .75}}}
		}
	}
	return out, nil
}

// shelf is a store that always gives the same answers.
type shelf struct{}

var kept = []sdk.Entry{
	{ID: "a", Text: "one", Label: "x", Meta: sdk.Meta{"page": 1.0}, Hash: []byte{1, 2}},
	{ID: "b", Text: "two", Label: "y", Context: "of numbers"},
}

func (*shelf) Open(context.Context, string, sdk.Schema) (sdk.Collection, error) {
	return sdk.Collection{Entries: 2, Dimension: 2, Note: []byte("of the engine")}, nil
}

func (*shelf) Put(_ context.Context, _ string, entries []sdk.Entry) error {
	failed := sdk.RowErrors{}
	for i, e := range entries {
		if len(e.Label) > 5 {
			failed[i] = sdk.Invalid(errors.New("the label is too long: at most 5 bytes"))
		}
	}
	if len(failed) > 0 {
		return failed
	}
	return nil
}
func (*shelf) Delete(context.Context, string, []string) error { return nil }
func (*shelf) Commit(context.Context, string, []byte) error   { return nil }
func (*shelf) Drop(context.Context, string) error {
	return sdk.Transient(errors.New("another process writes it"), 2*time.Second)
}

func (*shelf) Search(_ context.Context, _ string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	out := make([]sdk.Hits, len(queries))
	for i := range queries {
		out[i].Dense = []sdk.Hit{{ID: "b", Dense: .5, Lexical: sdk.Unscored, Entry: &kept[1]}, {ID: "a", Dense: .25, Lexical: sdk.Unscored, Entry: &kept[0]}}
	}
	return out, nil
}

func (*shelf) Get(_ context.Context, _ string, ids []string) ([]sdk.Entry, error) {
	out := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		for _, e := range kept {
			if e.ID == id {
				out[i] = e
			}
		}
	}
	return out, nil
}

func (*shelf) Scan(context.Context, string, sdk.Scan) (sdk.Page, error) {
	return sdk.Page{Entries: kept, Next: "after b"}, nil
}

func (*shelf) List(context.Context) ([]sdk.Collection, error) {
	return []sdk.Collection{{Name: "k", Entries: 2, Dimension: 2}}, nil
}

func (*shelf) Attach(context.Context) (sdk.Attached, error) { return theirs, nil }

var theirs = sdk.Attached{
	Name: "docs", ID: "docs_v2", Entries: 2, Dimension: 2, Labels: true,
	Fields: []sdk.AttachedField{{Part: "id", Field: "pk", Why: "the primary key"}, {Part: "text", Field: "content", Why: "named in the file"}},
	Notes:  []string{"It is not searched by words: no field has an index for that."},
}
