package milvus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/grpc"

	"github.com/racflow/racflow/plugins/internal/store/milvus/entries"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// scripted is a server with one collection, docs, whose keys are integers. It returns Unimplemented
// for all other calls, including every call that writes.
type scripted struct {
	milvuspb.UnimplementedMilvusServiceServer
	fields  []*schemapb.FieldSchema
	metrics map[string]string
	rows    int
	target  string                      // of the alias; empty: docs
	fails   map[string]*commonpb.Status // by method
	states  []commonpb.LoadState        // in turn; the last one stays

	mu      sync.Mutex
	calls   []string
	most    int64    // most queries of one search
	outputs []string // fields that the last call asked for
}

// start serves until the test ends.
func (s *scripted) start(t testing.TB) config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:])
		return handle(ctx, req)
	}))
	milvuspb.RegisterMilvusServiceServer(g, s)
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	e := milvusEngine{t: t, address: listener.Addr().String()}
	c := e.config()
	c.RetryTime = 200 * time.Millisecond
	return c
}

func (s *scripted) status(method string) *commonpb.Status {
	if failed := s.fails[method]; failed != nil {
		return failed
	}
	return &commonpb.Status{}
}

func (s *scripted) ShowCollections(context.Context, *milvuspb.ShowCollectionsRequest) (*milvuspb.ShowCollectionsResponse, error) {
	return &milvuspb.ShowCollectionsResponse{Status: s.status("ShowCollections"), CollectionNames: []string{"faq", "docs"}}, nil
}

func (s *scripted) DescribeCollection(_ context.Context, r *milvuspb.DescribeCollectionRequest) (*milvuspb.DescribeCollectionResponse, error) {
	name := r.CollectionName
	if name == "alias" {
		name = cmp.Or(s.target, "docs")
	}
	if name != "docs" && name != s.target {
		return &milvuspb.DescribeCollectionResponse{Status: &commonpb.Status{Code: 100, Reason: "collection not found"}}, nil
	}
	return &milvuspb.DescribeCollectionResponse{
		Status: s.status("DescribeCollection"), CollectionName: name, CollectionID: 449,
		Schema: &schemapb.CollectionSchema{Name: name, Fields: s.fields},
	}, nil
}

func (s *scripted) DescribeIndex(context.Context, *milvuspb.DescribeIndexRequest) (*milvuspb.DescribeIndexResponse, error) {
	reply := &milvuspb.DescribeIndexResponse{Status: s.status("DescribeIndex")}
	for field, metric := range s.metrics {
		reply.IndexDescriptions = append(reply.IndexDescriptions, &milvuspb.IndexDescription{FieldName: field, Params: keyValues("index_type", "FLAT", "metric_type", metric)})
	}
	return reply, nil
}

func (s *scripted) GetLoadState(context.Context, *milvuspb.GetLoadStateRequest) (*milvuspb.GetLoadStateResponse, error) {
	state := commonpb.LoadState_LoadStateLoaded
	if len(s.states) > 0 {
		if state = s.states[0]; len(s.states) > 1 {
			s.states = s.states[1:]
		}
	}
	return &milvuspb.GetLoadStateResponse{Status: s.status("GetLoadState"), State: state}, nil
}

func (s *scripted) LoadCollection(context.Context, *milvuspb.LoadCollectionRequest) (*commonpb.Status, error) {
	return s.status("LoadCollection"), nil
}

// Query returns the rows after a key, with the texts "0", "1" and so on, and NULL for every third.
func (s *scripted) Query(_ context.Context, r *milvuspb.QueryRequest) (*milvuspb.QueryResults, error) {
	if status := s.status("Query"); status.Code != 0 {
		return &milvuspb.QueryResults{Status: status}, nil
	}
	if slices.Contains(r.OutputFields, "count(*)") {
		return &milvuspb.QueryResults{Status: &commonpb.Status{}, FieldsData: []*schemapb.FieldData{int64s("count(*)", []int64{int64(s.rows)})}}, nil
	}
	from := int64(-1)
	if _, after, ok := strings.Cut(r.Expr, "pk > "); ok {
		from = int64(number(after))
	}
	limit := s.rows
	for _, p := range r.QueryParams {
		if p.Key == "limit" {
			limit, _ = strconv.Atoi(p.Value)
		}
	}
	var keys []int64
	for key := from + 1; key < int64(s.rows) && len(keys) < limit; key++ {
		keys = append(keys, key)
	}
	return &milvuspb.QueryResults{Status: &commonpb.Status{}, FieldsData: s.columns(keys)}, nil
}

// columns leaves out NULL values and only marks them, as some servers do.
func (s *scripted) columns(keys []int64) []*schemapb.FieldData {
	var texts []string
	var valid []bool
	var all [][]float32
	for _, key := range keys {
		if valid = append(valid, key%3 != 2); key%3 != 2 {
			texts = append(texts, fmt.Sprint(key))
		}
		all = append(all, []float32{1, float32(key)})
	}
	text := strs("text", texts)
	text.ValidData = valid
	return []*schemapb.FieldData{int64s("pk", keys), text, milvusVectors("vector", append(all, []float32{0, 0})[:max(1, len(all))])}
}

func (s *scripted) Search(_ context.Context, r *milvuspb.SearchRequest) (*milvuspb.SearchResults, error) {
	if status := s.status("Search"); status.Code != 0 {
		return &milvuspb.SearchResults{Status: status}, nil
	}
	s.most, s.outputs = max(s.most, r.Nq), r.OutputFields
	data := &schemapb.SearchResultData{NumQueries: r.Nq, Ids: &schemapb.IDs{IdField: &schemapb.IDs_IntId{IntId: &schemapb.LongArray{}}}}
	for range r.Nq {
		data.Ids.GetIntId().Data = append(data.Ids.GetIntId().Data, 1)
		data.Scores, data.Topks = append(data.Scores, 1), append(data.Topks, 1)
	}
	data.FieldsData = s.columns(data.Ids.GetIntId().Data)
	return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: data}, nil
}

// newScripted returns a server whose collection can be attached.
func newScripted() *scripted {
	text := field("text", schemapb.DataType_VarChar)
	text.Nullable = true
	return &scripted{
		fields:  []*schemapb.FieldSchema{primary(field("pk", schemapb.DataType_Int64)), text, field("vector", schemapb.DataType_FloatVector, "dim", "2")},
		metrics: map[string]string{"vector": "COSINE"}, rows: 2500,
	}
}

// For IP and L2 the cosines are computed from vectors, unless the file says that all have norm 1 and the engine's
// sample has no other norm. The server returns 1 for the vector (1, 1).
func TestAttachedNorms(t *testing.T) {
	for _, test := range []struct {
		metric     string
		normalized bool
		norm, want float64
	}{
		{"IP", false, 0, math.Sqrt2 / 2}, {"IP", true, 0, 1}, {"IP", true, 2, math.Sqrt2 / 2},
		{"L2", false, 2, math.Sqrt2 / 2}, {"L2", true, 0, .5}, {"L2", true, 2, math.Sqrt2 / 2}, {"COSINE", false, 2, 1},
	} {
		s := newScripted()
		s.metrics["vector"], s.rows = test.metric, 1
		r, _ := attach(t, s.start(t), entries.Arguments{Collection: "docs", Normalized: test.normalized})
		for _, norm := range []float64{test.norm, 0, test.norm} {
			hits, err := r.Search(t.Context(), "docs", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3, Norm: norm}, []sdk.Query{{Vector: []float32{1, 0}}})
			must.Do(t, err)
			if got := float64(hits[0].Dense[0].Dense); norm == test.norm && math.Abs(got-test.want) > 1e-6 {
				t.Errorf("%s with a mean norm of %v: %v, want %v", test.metric, norm, got, test.want)
			}
		}
	}
}

// Searches of a collection continue after its alias has moved and Attach has seen this.
func TestAttachedAliasMoves(t *testing.T) {
	s := newScripted()
	r, before := attach(t, s.start(t), entries.Arguments{Collection: "alias"})
	s.mu.Lock()
	s.target = "docs2"
	s.mu.Unlock()
	now, err := r.Attach(t.Context())
	if err != nil || now.Name != "docs2" || now.ID == before.ID {
		t.Fatalf("%+v, %v", now, err)
	}
	for _, name := range []string{before.Name, now.Name} {
		if _, err := r.Search(t.Context(), name, sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 1}}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever is requested from a store with an attached collection, it makes no call that writes.
func TestAttachedCallsNothingThatWrites(t *testing.T) {
	s := newScripted()
	c := s.start(t)
	r, found := attach(t, c, entries.Arguments{Collection: "alias"})
	if found.Name != "docs" || found.Entries != 2500 || found.Labels || found.Lexical {
		t.Errorf("found %+v", found)
	}
	_, err := r.Search(t.Context(), "docs", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 3, Texts: true}, []sdk.Query{{Text: "1", Vector: []float32{1, 1}}})
	must.Do(t, err)
	_, err = r.Get(t.Context(), "docs", []string{"1", "2"})
	must.Do(t, err)
	page, err := r.Scan(t.Context(), "docs", sdk.Scan{Texts: true, Limit: 2000})
	if err != nil || len(page.Entries) != 2000 || page.Next != "1999" {
		t.Errorf("%d entries up to %q, %v", len(page.Entries), page.Next, err)
	}
	for i, e := range page.Entries {
		want := fmt.Sprint(i)
		if i%3 == 2 { // NULL
			want = ""
		}
		if e.ID != fmt.Sprint(i) || e.Text != want {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	for what, err := range map[string]error{
		"put": r.Put(t.Context(), "docs", []sdk.Entry{{ID: "1"}}), "delete": r.Delete(t.Context(), "docs", []string{"1"}), "commit": r.Commit(t.Context(), "docs", nil), "drop": r.Drop(t.Context(), "docs"),
	} {
		if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "read only") {
			t.Errorf("%s gives %v", what, err)
		}
	}
	reads := []string{"Connect", "GetVersion", "DescribeCollection", "DescribeIndex", "GetLoadState", "Query", "Search"}
	for _, call := range s.calls {
		if !slices.Contains(reads, call) {
			t.Errorf("it calls %s", call)
		}
	}
	if !slices.Contains(s.calls, "Search") {
		t.Errorf("it calls only %v", s.calls)
	}
}

// Errors say what to do, and name the place in the file.
func TestAttachedRefused(t *testing.T) {
	vector := func(name string, typ schemapb.DataType) *schemapb.FieldSchema { return field(name, typ, "dim", "2") }
	for name, test := range map[string]struct {
		change   func(*scripted)
		give     entries.Arguments
		argument string
		wants    []string
	}{
		"no such collection":      {give: entries.Arguments{Collection: "doc"}, argument: "collection", wants: []string{`"doc"`, "docs, faq"}},
		"a partition":             {give: entries.Arguments{Partitions: []string{"en"}}, argument: "partitions", wants: []string{"no partitions"}},
		"a field that is missing": {give: entries.Arguments{Fields: entries.Fields{Label: "intent"}}, argument: "fields", wants: []string{`"intent"`, "pk (Int64), text (VarChar), vector (FloatVector)"}},
		"a text that is none":     {give: entries.Arguments{Fields: entries.Fields{Text: "pk"}}, argument: "fields", wants: []string{"Int64"}},
		"members of no JSON":      {give: entries.Arguments{Fields: entries.Fields{Meta: []string{`text["a"]`}}}, argument: "fields", wants: []string{"JSON"}},
		"a vector that is none":   {give: entries.Arguments{Fields: entries.Fields{Vector: "text"}}, argument: "fields", wants: []string{"VarChar", "FloatVector"}},
		"a sparse field":          {give: entries.Arguments{Fields: entries.Fields{Sparse: "words"}}, argument: "fields", wants: []string{"words"}},
		"several vectors": {func(s *scripted) { s.fields = append(s.fields, vector("image", schemapb.DataType_FloatVector)) }, entries.Arguments{}, "fields",
			[]string{"vector, image", `fields { vector = "vector" }`}},
		"no vector": {func(s *scripted) { s.fields = s.fields[:2] }, entries.Arguments{}, "collection", []string{"no field of vectors"}},
		"bits": {func(s *scripted) {
			s.fields[2], s.metrics["vector"] = vector("vector", schemapb.DataType_BinaryVector), "HAMMING"
		}, entries.Arguments{}, "collection", []string{"no field of vectors of floats", "vector (BinaryVector)"}},
		"an unknown metric": {func(s *scripted) { s.metrics["vector"] = "MHJACCARD" }, entries.Arguments{}, "collection", []string{"MHJACCARD", "COSINE, IP and L2"}},
		"no index":          {func(s *scripted) { s.metrics = nil }, entries.Arguments{}, "collection", []string{"no index", "COSINE"}},
		"no index, as servers say it": {func(s *scripted) {
			s.fails = map[string]*commonpb.Status{"DescribeIndex": {Code: 700, Reason: "index not found"}}
		}, entries.Arguments{}, "collection",
			[]string{"no index"}},
		"neither text nor label": {func(s *scripted) {
			s.fields = append(s.fields, field("a", schemapb.DataType_VarChar))
			s.fields[1] = field("b", schemapb.DataType_VarChar)
		}, entries.Arguments{}, "fields", []string{"fields { text ="}},
		"not loaded": {func(s *scripted) { s.states = []commonpb.LoadState{commonpb.LoadState_LoadStateNotLoad} }, entries.Arguments{}, "load", []string{"load = true"}},
		"no right to read": {func(s *scripted) {
			s.fails = map[string]*commonpb.Status{"Query": {Code: 1401, Reason: "privilege not permitted"}}
		}, entries.Arguments{}, "", []string{"rights", "privilege not permitted"}},
		"no right to describe": {func(s *scripted) {
			s.fails = map[string]*commonpb.Status{"DescribeCollection": {Code: 1401, Reason: "privilege not permitted"}}
		}, entries.Arguments{}, "", []string{"rights"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripted()
			if test.change != nil {
				test.change(s)
			}
			test.give.Collection = cmp.Or(test.give.Collection, "docs")
			_, err := openReader(t, s.start(t), test.give).Attach(t.Context())
			if sdk.CodeOf(err) != sdk.CodeInvalid {
				t.Fatalf("got %v, an error of another kind", err)
			}
			argument := ""
			for _, e := range sdk.ArgumentErrors(err) {
				argument = e.Argument
			}
			if argument != test.argument {
				t.Errorf("it is about the argument %q: %v", argument, err)
			}
			for _, want := range test.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %s: %v", want, err)
				}
			}
		})
	}
}

// The server is asked to load a collection only if the file says so.
func TestAttachedIsLoaded(t *testing.T) {
	s := newScripted()
	loading := []commonpb.LoadState{commonpb.LoadState_LoadStateLoading, commonpb.LoadState_LoadStateLoaded}
	s.states = append([]commonpb.LoadState{commonpb.LoadState_LoadStateNotLoad}, loading...)
	c := s.start(t)
	_, found := attach(t, c, entries.Arguments{Collection: "docs", Load: true})
	s.states = loading // loaded by somebody else
	attach(t, c, entries.Arguments{Collection: "docs"})
	loads := 0
	for _, call := range s.calls {
		if call == "LoadCollection" {
			loads++
		}
	}
	if found.Name != "docs" || loads != 1 {
		t.Errorf("it was loaded %d times: %v", loads, s.calls)
	}
}

// Changes of a collection during reads are reported correctly.
func TestAttachedIsGone(t *testing.T) {
	for what, test := range map[string]struct {
		status *commonpb.Status
		want   string
	}{
		"dropped":  {&commonpb.Status{Code: 100, Reason: "collection not found"}, `collection "docs" is gone`},
		"released": {&commonpb.Status{Code: 101, Reason: "collection not loaded"}, "load = true"},
	} {
		s := newScripted()
		r, _ := attach(t, s.start(t), entries.Arguments{Collection: "docs"})
		s.mu.Lock()
		s.fails = map[string]*commonpb.Status{"Search": test.status, "Query": test.status}
		s.mu.Unlock()
		_, searched := r.Search(t.Context(), "docs", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 3}, []sdk.Query{{Vector: []float32{1, 1}}})
		_, got := r.Get(t.Context(), "docs", []string{"1"})
		_, scanned := r.Scan(t.Context(), "docs", sdk.Scan{})
		for _, err := range []error{searched, got, scanned} {
			if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
