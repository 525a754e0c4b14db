package attached

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// letters embeds a text as the direction of its counts of the letters a to d, turned by an angle in
// the plane of the first two.
type letters struct {
	angle  float64
	fits   bool
	state  []byte
	counts *counts
	fail   error
}

// counts records the calls of an embedder.
type counts struct{ passages, fitted, started int }

func (*letters) Dimension() int                 { return 4 }
func (l *letters) Fingerprint() string          { return fmt.Sprint(l.angle, string(l.state)) }
func (l *letters) Fits() bool                   { return l.fits && l.state == nil }
func (l *letters) State() ([]byte, error)       { return fmt.Append(nil, l.counts.fitted), nil }
func (l *letters) vector(text string) []float32 { return turn(count(text), l.angle) }
func (l *letters) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	for batch, err := range rows {
		if err != nil {
			return err
		}
		l.counts.fitted += len(batch)
	}
	return nil
}

func (l *letters) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	l.counts.passages += len(texts)
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = l.vector(text)
	}
	return all, l.fail
}

func count(text string) []float32 {
	v := make([]float32, 4)
	for j, letter := range "abcd" {
		v[j] = float32(strings.Count(text, string(letter)))
	}
	norm := math.Sqrt(generation.Dot(v, v))
	for j := range v {
		v[j] /= float32(max(norm, 1e-9))
	}
	return v
}

func turn(v []float32, angle float64) []float32 {
	x, y := float64(v[0]), float64(v[1])
	sin, cos := math.Sincos(angle)
	v[0], v[1] = float32(x*cos-y*sin), float32(x*sin+y*cos)
	return v
}

// bench is a block over another program's collection.
type bench struct {
	t      *testing.T
	theirs *enginetest.External
	block  *pipeline.Knowledge
	dir    string
	model  letters
	counts counts
	bounds bounds
}

func newBench(t *testing.T, entries ...sdk.Entry) *bench {
	b := &bench{t: t, theirs: enginetest.NewExternal("1", false, entries...), dir: filepath.Join(t.TempDir(), "state", "attached"), bounds: bounds{maxEntries, maxBytes}}
	must.Do(t, os.MkdirAll(filepath.Dir(b.dir), 0o700))
	b.block = &pipeline.Knowledge{
		Name:  "k",
		Embed: &pipeline.Stage{Block: "embed", Use: "letters", UseRange: hcl.Range{Filename: "embed"}},
		Store: &pipeline.Stage{Block: "store", Use: "theirs", Info: b.theirs.Stage(), UseRange: hcl.Range{Filename: "store"}, Config: pipeline.Config{Public: json.RawMessage(`{"collection":"theirs"}`)}},
	}
	return b
}

// Embedder implements generation.Starter.

func (b *bench) Embedder(_ context.Context, state []byte, _ json.RawMessage) (generation.Embedder, error) {
	b.counts.started++
	l := b.model
	l.state, l.counts = state, &b.counts
	return &l, nil
}

func (b *bench) Store(context.Context) (generation.Store, error) {
	return enginetest.Open(b.t, b.block.Store.Info, sdk.Setup{}, string(b.block.Store.Config.Public))
}

func (*bench) Chunker(context.Context) (generation.Chunker, error) { return nil, nil }

func (*bench) Enricher(context.Context, *pipeline.Stage) (generation.Enricher, error) {
	return nil, nil
}

func (b *bench) open(change ...func(*Options)) (*Collection, error) {
	o := Options{Dir: b.dir}
	for _, do := range change {
		do(&o)
	}
	return open(b.t.Context(), b.block, b, o, b.bounds)
}

func (b *bench) must(change ...func(*Options)) *Collection {
	b.t.Helper()
	c, err := b.open(change...)
	must.Do(b.t, err)
	return c
}

// rows makes entries from texts; the label of each is its first letter.
func rows(texts ...string) []sdk.Entry {
	var all []sdk.Entry
	for i, text := range texts {
		all = append(all, sdk.Entry{ID: fmt.Sprintf("%03d", i), Text: text, Label: text[:1], Vector: count(text)})
	}
	return all
}

// many makes n entries.
func many(n int) []sdk.Entry {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.Repeat("a", 1+i%3) + strings.Repeat("b", 1+i%5)
	}
	return rows(texts...)
}

func all(t *testing.T, pages iter.Seq2[[]sdk.Entry, error]) (entries []sdk.Entry) {
	t.Helper()
	for page, err := range pages {
		must.Do(t, err)
		entries = append(entries, page...)
	}
	return entries
}

func ids(entries []sdk.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}
