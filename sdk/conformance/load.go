package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/fuse"
)

// Load is work for a running stage of any kind: as many rows as a check wants, each with a result
// that can be compared.
type Load struct {
	stage   sdk.Stage
	process *Process
}

// Row is the result of one row.
type Row struct {
	text   string
	vector []float32
}

// collection is that of a store under load. It lies in a state folder of its own.
const collection = "conformance_load"

// NewLoad starts the stage, fitted where it wants to be; a store has a few entries.
func NewLoad(t T, s *Subject) (*Load, error) {
	p, err := startFitted(t, s)
	if err != nil || s.Stage.Kind != sdk.KindStore {
		return &Load{s.Stage, p}, err
	}
	entries := make([]sdk.Entry, 50)
	for i := range entries {
		entries[i] = sdk.Entry{ID: fmt.Sprint("entry-", i), Text: fmt.Sprint("my card is gone ", i), Label: labels[i%3], Vector: direction(i)}
	}
	ctx := t.Context()
	if _, err := p.Stage.Open(ctx, collection, sdk.Schema{Dimension: 2}); err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = p.Stage.Drop(context.WithoutCancel(ctx), collection) })
	return &Load{s.Stage, p}, errors.Join(p.Stage.Put(ctx, collection, entries), p.Stage.Commit(ctx, collection, nil))
}

var dense = sdk.Ranking{
	Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 5}, Fusion: sdk.Fusion{Method: fuse.Weighted, DenseWeight: 1}, TopK: 5,
}

func direction(i int) []float32 { return []float32{1, float32(i % 50)} }

// Process is the one that works.
func (l *Load) Process() *Process { return l.process }

// Batch is how many rows the stage likes best in a call.
func (l *Load) Batch() int {
	if l.stage.Batch > 0 {
		return l.stage.Batch
	}
	return 64
}

// Rows asks for the results of rows, which are the same ones at each call.
func (l *Load) Rows(ctx context.Context, from, to int) ([]Row, error) {
	n, s := to-from, l.process.Stage
	switch l.stage.Kind {
	case sdk.KindEmbed:
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("utterance number %d about a lost card", from+i)
		}
		vectors, err := s.Embed(ctx, sdk.RolePassage, texts)
		if err != nil {
			return nil, err
		}
		out := make([]Row, n)
		for i := range out {
			out[i].vector = vectors[i]
		}
		return out, nil
	case sdk.KindChunk:
		documents := make([]sdk.Document, n)
		for i := range documents {
			documents[i] = *document(from + i)
		}
		return texted(flatten(s.Chunk(ctx, documents)))
	case sdk.KindEnrich:
		passages := make([]sdk.Passage, n)
		for i := range passages {
			d := document(from + i)
			passages[i] = sdk.Passage{Document: d, Chunk: sdk.Chunk{End: len(d.Text)}}
		}
		return texted(flatten(s.Enrich(ctx, passages)))
	case sdk.KindStore:
		queries := make([]sdk.Query, n)
		for i := range queries {
			queries[i].Vector = direction(from + i)
		}
		return texted(flatten(s.Retrieve(ctx, collection, dense, queries)))
	}
	b := sdk.Batch{Labels: labels, Items: make([]sdk.Item, n)}
	for i := range b.Items {
		b.Items[i] = item(from + i)
	}
	return texted(results(ctx, s, l.stage.Kind, b))
}

func document(i int) *sdk.Document {
	return &sdk.Document{ID: fmt.Sprint("document-", i), Text: fmt.Sprintf("# Cards\n\nA lost card is blocked, says page %d.\n\nA new one takes a week.\n", i)}
}

func texted(texts []string, err error) ([]Row, error) {
	out := make([]Row, len(texts))
	for i, text := range texts {
		out[i].text = text
	}
	return out, err
}

// Same asks for rows again and compares them with what they were. What another machine returns may
// differ.
func (l *Load) Same(ctx context.Context, from int, want []Row) error {
	got, err := l.Rows(ctx, from, from+len(want))
	if err != nil || l.stage.Network {
		return err
	}
	for i := range got {
		if d := equal(got[i].text, want[i].text); d != "" {
			return fmt.Errorf("row %d: %s", from+i, d)
		}
		if d := distance(got[i].vector, want[i].vector); !(d < 1e-4) {
			return fmt.Errorf("row %d: its vector is %v away from what it was", from+i, d)
		}
	}
	return nil
}

// Large asks for n rows whose ids, or texts that hold nothing, have size bytes each.
func (l *Load) Large(ctx context.Context, n, size int) error {
	s, long := l.process.Stage, strings.Repeat("x", size)
	var err error
	switch l.stage.Kind {
	case sdk.KindEmbed:
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strings.Repeat(" ", size)
		}
		_, err = s.Embed(ctx, sdk.RolePassage, texts)
	case sdk.KindChunk:
		documents := make([]sdk.Document, n)
		for i := range documents {
			documents[i] = sdk.Document{ID: fmt.Sprint(i, long), Text: "A lost card is blocked."}
		}
		_, err = s.Chunk(ctx, documents)
	case sdk.KindEnrich:
		passages := make([]sdk.Passage, n)
		for i := range passages {
			passages[i] = sdk.Passage{Document: &sdk.Document{ID: fmt.Sprint(i, long), Text: "A lost card."}, Chunk: sdk.Chunk{End: 12}}
		}
		_, err = s.Enrich(ctx, passages)
	case sdk.KindStore:
		queries := make([]sdk.Query, n) // whose texts a dense search does not look at
		for i := range queries {
			queries[i] = sdk.Query{Text: long, Vector: direction(i)}
		}
		_, err = s.Retrieve(ctx, collection, dense, queries)
	default:
		b := items(n)
		for i := range b.Items {
			b.Items[i].ID = fmt.Sprint(i, long)
		}
		_, err = results(ctx, s, l.stage.Kind, b)
	}
	if failed := (sdk.RowErrors)(nil); errors.As(err, &failed) {
		return nil // it says so, row by row, and that is all that can be wanted
	}
	return err
}
