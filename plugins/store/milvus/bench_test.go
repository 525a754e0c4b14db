package milvus

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

const benchDimension = 384

// rowsVariable sets the rows of the comparison; it is left out without.
const rowsVariable = "RACFLOW_MILVUS_ROWS"

// TestAgainstBareClient loads and searches the same rows with the store and
// with a program that does nothing but call the SDK, in turns.
func TestAgainstBareClient(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(rowsVariable))
	if err != nil {
		t.Skipf("%s is not set", rowsVariable)
	}
	e := startEngine(t)
	random := rand.New(rand.NewPCG(3, 4))
	s := openStore(t, e.config())
	_, err = s.Open(t.Context(), "c", sdk.Schema{Dimension: benchDimension, Analyzer: "standard"})
	must(t, err)
	bare := newBareClient(t, e)
	const batch = 1000
	var batches [][]sdk.Entry
	for at := 0; at < n; at += batch {
		entries := make([]sdk.Entry, batch)
		for i := range entries {
			entries[i] = sdk.Entry{ID: fmt.Sprint("entry ", at+i), Label: fmt.Sprint("label ", i%150), Text: benchText(random, 16), Vector: benchVector(random), Hash: make([]byte, 16)}
		}
		batches = append(batches, entries)
	}
	start, work := time.Now(), e.cpu()
	for _, entries := range batches {
		bare.load(entries)
	}
	theirs, theirWork := time.Since(start), e.cpu()-work
	start, work = time.Now(), e.cpu()
	for _, entries := range batches {
		for part := range slices.Chunk(entries, 250) { // as the engine does
			must(t, s.Put(t.Context(), "c", part))
		}
	}
	put := time.Since(start)
	must(t, s.Commit(t.Context(), "c", []byte("note")))
	ours, ourWork := time.Since(start), e.cpu()-work
	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	t.Logf("load: bare %.0f rows/s, store %.0f rows/s, ratio %.2f (commit %v); CPU of the server %v, %v", rate(theirs), rate(ours), rate(ours)/rate(theirs), ours-put, theirWork, ourWork)

	for _, depth := range []int{60, 240} {
		var a, b []time.Duration
		for range 100 {
			q := sdk.Query{Text: benchText(random, 8), Vector: benchVector(random)}
			start := time.Now()
			bare.hybrid(q, depth)
			b = append(b, time.Since(start))
			start = time.Now()
			_, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, Depth: depth}, []sdk.Query{q})
			must(t, err)
			a = append(a, time.Since(start))
		}
		slices.Sort(a)
		slices.Sort(b)
		t.Logf("hybrid, depth %d: p50 bare %v, store %v, ratio %.2f; p95 %v, %v", depth, b[50], a[50], a[50].Seconds()/b[50].Seconds(), b[95], a[95])
	}
}

// cpu is the processor time that the server has taken.
func (e *engine) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func benchText(r *rand.Rand, words int) string {
	all := make([]string, words)
	for i := range all {
		all[i] = fmt.Sprint("word", int(math.Pow(r.Float64(), 3)*30000))
	}
	return strings.Join(all, " ")
}

func benchVector(r *rand.Rand) []float32 {
	x := make([]float32, benchDimension)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return unit(x)
}

// bareClient is what a short program would be: a collection of its own with
// id, label, text and the two vectors.
type bareClient struct {
	testing.TB
	client.Client
}

const bareTable = "bare"

func newBareClient(t testing.TB, e *engine) *bareClient {
	t.Helper()
	server, err := newServer(e.config())
	must(t, err)
	c, err := client.NewClient(t.Context(), client.Config{Address: e.address, DialOptions: server.dialOptions()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	varchar := func(name string) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(entity.FieldTypeVarChar).WithMaxLength(maxBytes)
	}
	schema := entity.NewSchema().WithName(bareTable).
		WithField(varchar("id").WithIsPrimaryKey(true)).WithField(varchar("label")).WithField(varchar("text")).
		WithField(entity.NewField().WithName(fieldVector).WithDataType(entity.FieldTypeFloatVector).WithDim(benchDimension)).
		WithField(entity.NewField().WithName(fieldWords).WithDataType(entity.FieldTypeSparseVector))
	must(t, c.CreateCollection(t.Context(), schema, 1))
	for field, index := range map[string]string{fieldVector: "FLAT", fieldWords: "SPARSE_INVERTED_INDEX"} {
		must(t, c.CreateIndex(t.Context(), bareTable, field, entity.NewGenericIndex(field, entity.IndexType(index), map[string]string{"metric_type": "IP"}), false))
	}
	must(t, c.LoadCollection(t.Context(), bareTable, false))
	return &bareClient{TB: t, Client: c}
}

func (b *bareClient) load(entries []sdk.Entry) {
	formula := newBM25(1.2, 0.75, 16)
	words := make([]entity.SparseEmbedding, len(entries))
	ids, labels, texts, vectors := make([]string, len(entries)), make([]string, len(entries)), make([]string, len(entries)), make([][]float32, len(entries))
	for i, e := range entries {
		ids[i], labels[i], texts[i], vectors[i] = e.ID, e.Label, e.Text, e.Vector
		words[i] = formula.document(countWords(standard, "", e.Text))
	}
	_, err := b.Insert(b.Context(), bareTable, "", entity.NewColumnVarChar("id", ids), entity.NewColumnVarChar("label", labels), entity.NewColumnVarChar("text", texts),
		entity.NewColumnFloatVector(fieldVector, benchDimension, vectors), entity.NewColumnSparseVectors(fieldWords, words))
	must(b, err)
}

// hybrid sends the two searches at once.
func (b *bareClient) hybrid(q sdk.Query, depth int) {
	var g errgroup.Group
	g.Go(func() error {
		_, err := b.Search(b.Context(), bareTable, nil, "", []string{"id", "label"}, []entity.Vector{entity.FloatVector(q.Vector)}, fieldVector, entity.IP, depth, searchParams{})
		return err
	})
	g.Go(func() error {
		terms := []term{}
		for _, w := range standard.Append(nil, q.Text) {
			terms = append(terms, term{wordNumber(w), 5})
		}
		_, err := b.Search(b.Context(), bareTable, nil, "", []string{"id", "label"}, []entity.Vector{queryVector(terms)}, fieldWords, entity.IP, depth, lexicalParams())
		return err
	})
	must(b, g.Wait())
}
