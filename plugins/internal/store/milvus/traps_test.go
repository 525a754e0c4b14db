package milvus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"github.com/milvus-io/milvus-sdk-go/v2/entity"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// small opens the collection "c" with vectors of two dimensions.
func small(t testing.TB, c config) *store {
	t.Helper()
	s := openStore(t, c)
	mustOpen(t, s)
	return s
}

func mustOpen(t testing.TB, s *store) sdk.Collection {
	t.Helper()
	c, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	must.Do(t, err)
	return c
}

func entry(id, text string) sdk.Entry {
	return sdk.Entry{ID: id, Text: text, Label: "label of " + id, Vector: []float32{1, 0}}
}

func putAll(t testing.TB, s *store, entries ...sdk.Entry) {
	t.Helper()
	must.Do(t, s.Put(t.Context(), "c", entries))
	must.Do(t, s.Commit(t.Context(), "c", []byte("note")))
}

// bareSDK returns the SDK as the package uses it.
func bareSDK(t testing.TB, s *store) *client.GrpcClient {
	t.Helper()
	c, err := s.server.Client(t.Context())
	must.Do(t, err)
	return c
}

// Milvus Lite 2 reports failures in a field that the SDK ignores.
func TestSilentErrors(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"))
	c := knownOf(s)
	var answered *table.ServerError
	if _, _, err := c.Rows(true).Query(t.Context(), "key == 5 or )", []string{table.FieldKey}, 5); !errors.As(err, &answered) {
		t.Errorf("a wrong expression gives %v", err)
	}
	start := time.Now()
	err := c.Server.Call(t.Context(), "index", func(ctx context.Context, m *client.GrpcClient, _ int) error {
		return m.CreateIndex(ctx, c.Name, table.FieldVector, entity.NewGenericIndex(table.FieldVector, "HNSW", map[string]string{"metric_type": "IP"}), false)
	})
	if !errors.As(err, &answered) || time.Since(start) > inTime {
		t.Errorf("an index that is refused gives %v after %v", err, time.Since(start))
	}
	if err := c.Remove(t.Context(), "nothing == 5"); !errors.As(err, &answered) {
		t.Errorf("a deletion that is refused gives %v", err)
	}
	must.Do(t, bareSDK(t, s).DropCollection(t.Context(), c.Name))
	if _, err := c.Count(t.Context()); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("a collection that is gone gives %v", err)
	}
}

// A search without matching rows has no rows, and no error.
func TestNoMatch(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"))
	c := knownOf(s)
	rows := c.Rows(true)
	if rows, _, err := rows.Query(t.Context(), "key == \"77\"", []string{table.FieldKey, table.FieldMeta, table.FieldVector}, 5); err != nil || len(rows) != 0 {
		t.Errorf("query: %d rows, %v", len(rows), err)
	}
	lists, err := rows.Search(t.Context(), table.SearchRequest{
		Field: table.FieldVector, Metric: table.MetricIP, Expr: "key == \"77\"", Fields: []string{table.FieldID}, Limit: 5, Params: map[string]any{},
		Queries: table.Placeholders([][]float32{{1, 0}, {0, 1}}),
	})
	if err != nil || len(lists) != 2 || len(lists[0])+len(lists[1]) != 0 {
		t.Errorf("search: %v, %v", lists, err)
	}
}

// The index that auto chooses depends on the server. A collection with an index gets no other.
func TestAutomaticIndex(t *testing.T) {
	e := startEngine(t)
	config := e.config()
	config.Index = table.IndexAuto
	for range 2 {
		s := small(t, config)
		putAll(t, s, entry("a", "one"))
		if got := knownOf(s).IndexType; got != "AUTOINDEX" {
			t.Errorf("the index is %q", got)
		}
		hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "one", Vector: []float32{1, 1}}})
		if err != nil || len(hits[0].Dense) != 1 || len(hits[0].Lexical) != 1 {
			t.Errorf("hits %+v, %v", hits, err)
		}
		s.Close()
	}
	config.Index, config.Prefix = "HNSW", "other"
	s := small(t, config)
	if err := s.Put(t.Context(), "c", []sdk.Entry{entry("a", "one")}); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "HNSW") {
		t.Errorf("an index that the server lacks gives %v", err)
	}
}

// If the creator of a collection was killed before it made an index, every search would fail.
func TestHalfMadeCollection(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	must.Do(t, knownOf(s).Create(t.Context()))
	if c := mustOpen(t, s); c.Entries != 0 {
		t.Errorf("%+v", c)
	}
	putAll(t, s, entry("a", "one"))
	hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 5}, []sdk.Query{{Text: "one"}})
	if err != nil || len(hits[0].Lexical) != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
}

// inTime is longer than a busy machine takes for what the tests wait for, and less than the times of
// the config, which are 20 s.
const inTime = 15 * time.Second

// Without a server, the cause is reported in time.
func TestNoServer(t *testing.T) {
	address := freeAddress(t)
	config := (&milvusEngine{address: address}).config()
	config.ConnectTimeout = 500 * time.Millisecond // the server may just be starting
	s := openStore(t, config)
	start := time.Now()
	_, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), address) || time.Since(start) > inTime {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	must.Do(t, err)
	defer silent.Close()
	config.Address = silent.Addr().String()
	s = openStore(t, config)
	start = time.Now()
	if _, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2}); err == nil || time.Since(start) > inTime {
		t.Errorf("a server that does not answer: after %v: %v", time.Since(start), err)
	}
}

// An unreachable server is retried for as long as the config says.
func TestServerGoesAway(t *testing.T) {
	e := startEngine(t)
	config := e.config()
	config.RetryTime = time.Second
	s := small(t, config)
	putAll(t, s, entry("a", "one"))
	search := func(s *store) error {
		hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "one", Vector: []float32{1, 1}}})
		if err == nil && len(hits[0].Dense) != 1 {
			t.Errorf("hits %+v", hits)
		}
		return err
	}
	patient := small(t, e.config())
	must.Do(t, search(s))
	e.kill()
	start := time.Now()
	if err := search(s); sdk.CodeOf(err) != sdk.CodeDeadline || !strings.Contains(err.Error(), e.address) || time.Since(start) > inTime {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	back := make(chan error)
	go func() { back <- search(patient) }()
	time.Sleep(500 * time.Millisecond)
	e.start()
	if err := <-back; err != nil {
		t.Errorf("the server is back: %v", err)
	}
}

// Another client may drop and recreate a collection.
func TestRecreatedCollection(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"))
	other := openStore(t, e.config())
	must.Do(t, other.Drop(t.Context(), "c"))
	_, err := other.Open(t.Context(), "c", sdk.Schema{Dimension: 3})
	must.Do(t, err)
	must.Do(t, other.Put(t.Context(), "c", []sdk.Entry{{ID: "x", Vector: []float32{1, 0, 0}}}))
	must.Do(t, other.Commit(t.Context(), "c", nil))
	c, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 3})
	if err != nil || c.Entries != 1 || len(c.Note) != 0 { // the same commit number, but another commit
		t.Fatalf("%+v, %v", c, err)
	}
	hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 0, 0}}})
	if err != nil || len(hits[0].Dense) != 1 || hits[0].Dense[0].ID != "x" {
		t.Errorf("%+v, %v", hits, err)
	}
}

// Collections of other programs stay unchanged.
func TestForeignCollection(t *testing.T) {
	e := startEngine(t)
	s := openStore(t, e.config())
	m := bareSDK(t, s)
	o := table.Options{Prefix: "racflow"}
	name := o.TableName("c")
	foreign := entity.NewSchema().WithName(name).
		WithField(entity.NewField().WithName("pk").WithDataType(entity.FieldTypeInt64).WithIsPrimaryKey(true)).
		WithField(entity.NewField().WithName("v").WithDataType(entity.FieldTypeFloatVector).WithDim(2))
	must.Do(t, m.CreateCollection(t.Context(), foreign, 1))
	must.Do(t, m.CreateIndex(t.Context(), name, "v", entity.NewGenericIndex("v", "FLAT", map[string]string{"metric_type": "IP"}), false))
	must.Do(t, m.LoadCollection(t.Context(), name, false))
	_, err := m.Insert(t.Context(), name, "", entity.NewColumnInt64("pk", []int64{1, 2}), entity.NewColumnFloatVector("v", 2, [][]float32{{1, 0}, {0, 1}}))
	must.Do(t, err)
	if _, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"}); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "left as it is") {
		t.Errorf("opened with %v", err)
	}
	must.Do(t, s.Drop(t.Context(), "c")) // there is no such collection of ours
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("listed as %+v, %v", list, err)
	}
	rows, err := m.Query(t.Context(), name, nil, "pk > 0", []string{"pk"}, client.WithSearchQueryConsistencyLevel(entity.ClStrong))
	if err != nil || rows.Len() != 2 {
		t.Errorf("then it has %d rows, %v", rows.Len(), err)
	}
}

// Some servers have no databases, and would put the collection into their only one.
func TestNoDatabases(t *testing.T) {
	e := startEngine(t)
	config := e.config()
	config.Database = "mine"
	s := openStore(t, config)
	var argumentErr *sdk.ArgumentError
	if _, err := s.Open(t.Context(), "c", sdk.Schema{Dimension: 2}); !errors.As(err, &argumentErr) || argumentErr.Argument != "database" {
		t.Errorf("got %v", err)
	}
}

// Newer versions of the protocol's Go code break the SDK.
func TestProtocolVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../../go.mod")
	must.Do(t, err)
	_, line, ok := strings.Cut(string(mod), "github.com/milvus-io/milvus-proto/go-api/v2 ")
	var major, minor, patch int
	if n, err := fmt.Sscanf(line, "v%d.%d.%d", &major, &minor, &patch); !ok || n != 3 {
		t.Fatalf("no version in go.mod: %v", err)
	}
	if slices.Compare([]int{major, minor, patch}, []int{2, 6, 3}) > 0 {
		t.Errorf("version %d.%d.%d is newer than 2.6.3", major, minor, patch)
	}
}

// A server may unload collections, as some do at a restart.
func TestReleasedCollection(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"))
	must.Do(t, bareSDK(t, s).ReleaseCollection(t.Context(), knownOf(s).Name))
	hits, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "one", Vector: []float32{1, 1}}})
	if err != nil || len(hits[0].Dense) != 1 || len(hits[0].Lexical) != 1 {
		t.Errorf("hits %+v, %v", hits, err)
	}
	must.Do(t, bareSDK(t, s).ReleaseCollection(t.Context(), knownOf(s).Name))
	list := must.Get(openStore(t, e.config()).List(t.Context()))(t)
	must.Equal(t, "list", []sdk.Collection{{Name: "c", Entries: 1, Dimension: 2, Note: []byte("note")}}, list)
}
