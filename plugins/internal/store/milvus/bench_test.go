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

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

const benchDimension = 384

var standard = func() support.Analyzer {
	a, err := support.NamedAnalyzer("standard")
	if err != nil {
		panic(err)
	}
	return a
}()

// rowsVariable sets the rows of the comparison; it is left out without.
const rowsVariable = "RACFLOW_MILVUS_ROWS"

// TestAgainstBareClient loads and searches the same rows with the store and
// with a program that does nothing but call the SDK, in turns. The bare program
// does both one call after another and several at a time. A load begins with the
// creation of the collection. The words and the vector of an entry have nothing to do
// with each other, which is the worst case for a hybrid search: no entry is found by
// both sides.
func TestAgainstBareClient(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(rowsVariable))
	if err != nil {
		t.Skipf("%s is not set", rowsVariable)
	}
	e := startEngine(t)
	random := rand.New(rand.NewPCG(3, 4))
	s := openStore(t, e.config())
	schema := sdk.Schema{Dimension: benchDimension, Analyzer: "standard"}
	_, err = s.Open(t.Context(), "c", schema)
	must.Do(t, err)
	var bare *bareClient
	batches := benchBatches(random, n)
	loads := []struct {
		name string
		load func()
		time time.Duration
	}{
		{name: "bare", load: func() {
			bare = newBareClient(t, e, "bare")
			for _, entries := range batches {
				must.Do(t, bare.load(entries))
			}
		}},
		{name: "bare, three at a time", load: func() {
			parallel := newBareClient(t, e, "parallel")
			var g errgroup.Group
			g.SetLimit(3)
			for _, entries := range batches {
				g.Go(func() error { return parallel.load(entries) })
			}
			must.Do(t, g.Wait())
		}},
		{name: "store", load: func() {
			for _, entries := range batches {
				for part := range slices.Chunk(entries, 250) { // as the engine does
					must.Do(t, s.Put(t.Context(), "c", part))
				}
			}
			must.Do(t, s.Commit(t.Context(), "c", []byte("note")))
		}},
	}
	for i := range loads { // a round begins where the one before did not
		l := &loads[(i+benchRound)%len(loads)]
		start, work := time.Now(), e.cpu()
		l.load()
		l.time = time.Since(start)
		t.Logf("load, %s: %.0f rows/s; CPU of the server %v", l.name, float64(n)/l.time.Seconds(), e.cpu()-work)
	}
	benchRound++
	t.Logf("load: the store's rate is %.2f of bare, %.2f of bare with three at a time", loads[0].time.Seconds()/loads[2].time.Seconds(), loads[1].time.Seconds()/loads[2].time.Seconds())

	for _, depth := range []int{60, 240} {
		ways := []func(sdk.Query){
			func(q sdk.Query) { bare.hybrid(q, depth, 1) },
			func(q sdk.Query) { bare.hybrid(q, depth, 2) },
			func(q sdk.Query) {
				retrieve(t, s, ranking(depth), q)
			},
		}
		times, works := make([][]time.Duration, len(ways)), make([]time.Duration, len(ways))
		for round := range 150 {
			q := sdk.Query{Text: benchText(random, 8), Vector: benchVector(random)}
			for i := range ways {
				w := (i + round) % len(ways)
				start, work := time.Now(), e.cpu()
				ways[w](q)
				times[w] = append(times[w], time.Since(start))
				works[w] += e.cpu() - work
			}
		}
		p50 := make([]time.Duration, len(ways))
		for w, all := range times {
			slices.Sort(all)
			p50[w] = all[len(all)/2]
		}
		t.Logf("hybrid, depth %d: p50 bare %v, at once %v, store %v: %.2f and %.2f of it; p95 %v, %v, %v", depth, p50[0], p50[1], p50[2],
			p50[2].Seconds()/p50[0].Seconds(), p50[2].Seconds()/p50[1].Seconds(), times[0][142], times[1][142], times[2][142])
		t.Logf("hybrid, depth %d: CPU of the server per search: bare %v, store %v: %.2f of it", depth, works[0]/150, works[2]/150, works[2].Seconds()/works[0].Seconds())
	}

	var opening []time.Duration
	for range 21 {
		q := sdk.Query{Text: benchText(random, 8), Vector: benchVector(random)}
		start := time.Now()
		again := openStore(t, e.config())
		_, err := again.Open(t.Context(), "c", schema)
		must.Do(t, err)
		retrieve(t, again, ranking(240), q)
		opening = append(opening, time.Since(start))
	}
	slices.Sort(opening)
	t.Logf("opening and first answer: p50 %v, slowest %v", opening[10], opening[20])
}

// ranking is what a retrieve block asks for that says nothing else, of which a quarter of
// what each leg finds is kept.
func ranking(depth int) sdk.Ranking {
	return sdk.Ranking{
		Search: sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: depth}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 0.7}, TopK: depth / 4,
	}
}

// benchRound is how often the comparison ran before, with -count.
var benchRound int

func benchBatches(random *rand.Rand, n int) [][]sdk.Entry {
	const batch = 1000
	var batches [][]sdk.Entry
	for at := 0; at < n; at += batch {
		entries := make([]sdk.Entry, min(batch, n-at))
		for i := range entries {
			entries[i] = sdk.Entry{
				ID: fmt.Sprint("entry ", at+i), Label: fmt.Sprint("label ", i%150), Text: benchText(random, 6+random.IntN(20)),
				Vector: benchVector(random), Hash: make([]byte, 16),
			}
		}
		batches = append(batches, entries)
	}
	return batches
}

// cpu is the processor time that the server has taken.
func (e *milvusEngine) cpu() time.Duration {
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
	return table.UnitVector(x)
}

// bareClient is what a short program would be: a collection of its own with
// id, label, text and the two vectors.
type bareClient struct {
	testing.TB
	client.Client
	collection string
}

func newBareClient(t testing.TB, e *milvusEngine, collection string) *bareClient {
	t.Helper()
	server, err := table.NewServer(e.config().ServerConfig)
	must.Do(t, err)
	c, err := client.NewClient(t.Context(), client.Config{Address: e.address, DialOptions: server.DialOptions()})
	must.Do(t, err)
	t.Cleanup(func() { c.Close() })
	varchar := func(name string) *entity.Field {
		return entity.NewField().WithName(name).WithDataType(entity.FieldTypeVarChar).WithMaxLength(table.MaxBytes)
	}
	schema := entity.NewSchema().WithName(collection).
		WithField(varchar("id").WithIsPrimaryKey(true)).WithField(varchar("label")).WithField(varchar("text")).
		WithField(entity.NewField().WithName(table.FieldVector).WithDataType(entity.FieldTypeFloatVector).WithDim(benchDimension)).
		WithField(entity.NewField().WithName(table.FieldWords).WithDataType(entity.FieldTypeSparseVector))
	must.Do(t, c.CreateCollection(t.Context(), schema, 1))
	for field, index := range map[string]string{table.FieldVector: "FLAT", table.FieldWords: "SPARSE_INVERTED_INDEX"} {
		must.Do(t, c.CreateIndex(t.Context(), collection, field, entity.NewGenericIndex(field, entity.IndexType(index), map[string]string{"metric_type": "IP"}), false))
	}
	must.Do(t, c.LoadCollection(t.Context(), collection, false))
	return &bareClient{t, c, collection}
}

func (b *bareClient) load(entries []sdk.Entry) error {
	formula := table.NewFormula(1.2, 0.75, 16)
	words := make([]entity.SparseEmbedding, len(entries))
	ids, labels, texts, vectors := make([]string, len(entries)), make([]string, len(entries)), make([]string, len(entries)), make([][]float32, len(entries))
	for i, e := range entries {
		ids[i], labels[i], texts[i], vectors[i] = e.ID, e.Label, e.Text, e.Vector
		words[i] = formula.Document(table.CountWords(standard, "", e.Text))
	}
	_, err := b.Insert(b.Context(), b.collection, "", entity.NewColumnVarChar("id", ids), entity.NewColumnVarChar("label", labels), entity.NewColumnVarChar("text", texts),
		entity.NewColumnFloatVector(table.FieldVector, benchDimension, vectors), entity.NewColumnSparseVectors(table.FieldWords, words))
	return err
}

// hybrid sends the two searches, so many at a time.
func (b *bareClient) hybrid(q sdk.Query, depth, atOnce int) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	flat, err := entity.NewIndexFlatSearchParam()
	must.Do(b, err)
	sparse, err := entity.NewIndexSparseInvertedSearchParam(0)
	must.Do(b, err)
	g.Go(func() error {
		_, err := b.Search(b.Context(), b.collection, nil, "", []string{"id", "label"}, []entity.Vector{entity.FloatVector(q.Vector)}, table.FieldVector, entity.IP, depth, flat)
		return err
	})
	g.Go(func() error {
		var terms []table.Term
		for _, c := range table.CountWords(standard, "", q.Text).All() {
			terms = append(terms, table.Term{Word: c.Word, IDF: 5})
		}
		_, err := b.Search(b.Context(), b.collection, nil, "", []string{"id", "label"}, []entity.Vector{table.BM25Query(terms)}, table.FieldWords, entity.IP, depth, sparse)
		return err
	})
	must.Do(b, g.Wait())
}
