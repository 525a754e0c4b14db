package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// Load is work for a running stage of any kind: any number of rows, each with a result that can be
// compared.
type Load struct {
	stage   sdk.Stage
	Process *Process // that works
}

// collection is the name of the collection of a store under load. It lies in a state folder of its
// own.
const collection = "conformance_load"

// NewLoad starts the stage and fits it if it is a Fitter. A store gets a few entries.
func NewLoad(t *T, s *Subject) (*Load, error) {
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
	Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 5}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 1}, TopK: 5,
}

func direction(i int) []float32 { return []float32{1, float32(i % 50)} }

// Batch returns the stage's preferred number of rows per call.
func (l *Load) Batch() int {
	if l.stage.Batch > 0 {
		return l.stage.Batch
	}
	return 64
}

// Rows returns the results for rows. The same numbers always give the same rows.
func (l *Load) Rows(ctx context.Context, from, to int) ([]Row, error) {
	return call(ctx, l.Process.Stage, l.stage.Kind, numbered(l.stage.Kind, from, to, 0))
}

// Same asks for rows again and compares the results with the earlier ones. Results of another machine
// may differ.
func (l *Load) Same(ctx context.Context, from int, want []Row) error {
	got, err := l.Rows(ctx, from, from+len(want))
	if err != nil || l.stage.Network {
		return err
	}
	for i := range got {
		if err := got[i].differs(want[i], fmt.Sprint("row ", from+i)); err != nil {
			return err
		}
	}
	return nil
}

// Large sends n rows whose ids, or texts without content, have size bytes each. Rows may fail: an
// error for each row is all that can be expected.
func (l *Load) Large(ctx context.Context, n, size int) error {
	_, err := call(ctx, l.Process.Stage, l.stage.Kind, numbered(l.stage.Kind, 0, n, size))
	if errors.As(err, new(*wire.NumberError)) {
		return nil
	}
	return err
}
