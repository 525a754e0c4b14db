package milvus

import (
	"context"
	"encoding/json"
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
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// counter is a server with one collection of ten entries that counts its calls. It
// finds all rows whose key an expression names, and without one all entries, and scores
// them by the cosine to (1, 3).
type counter struct {
	milvuspb.UnimplementedMilvusServiceServer
	schema sdk.Schema
	made   *schemapb.CollectionSchema
	rows   []table.Row

	mu    sync.Mutex
	calls []string
	// held are dense searches, which wait until the cosines were asked for.
	held chan struct{}
}

func newCounter(t *testing.T) (*counter, config) {
	c := &counter{schema: sdk.Schema{Dimension: 2, Analyzer: "standard"}, held: make(chan struct{})}
	frequencies := map[uint32]uint32{}
	words := 0
	for i := range 10 {
		text := fmt.Sprint("tea number", i)
		counts := table.CountWords(standard, "", text)
		for _, w := range counts.All() {
			frequencies[w.Word]++
		}
		words += counts.Length
		c.rows = append(c.rows, table.Row{
			Key: table.RowKey(int64(i), int64(i)), Sequence: int64(i), Meta: []byte("{}"), Counts: counts,
			Entry: sdk.Entry{ID: fmt.Sprint("entry ", i), Text: text, Vector: table.UnitVector([]float32{1, float32(i)})},
		})
	}
	note, notes := NewBlob(KindNote, 1, []byte("note"))
	statistics, parts := NewBlob(KindStatistics, 1, EncodeRecord(frequencies))
	record, err := json.Marshal(Record{
		Commit: 1, Next: 10, Entries: 10, Words: int64(words), Lowest: 2, Highest: 2,
		Note: note, Statistics: []Blob{statistics},
	})
	must.Do(t, err)
	c.rows = slices.Concat(c.rows, notes, parts, []table.Row{table.System(TurnKey(1, "record"), string(record))})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	s := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		c.mu.Lock()
		c.calls = append(c.calls, info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:])
		c.mu.Unlock()
		return handle(ctx, req)
	}))
	milvuspb.RegisterMilvusServiceServer(s, c)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	e := milvusEngine{address: listener.Addr().String()}
	config := e.config()
	maker, err := table.NewServer(config.ServerConfig)
	must.Do(t, err)
	defer maker.Close()
	made, err := table.New(maker, config.Options, "c", c.schema)
	must.Do(t, err)
	must.Do(t, made.Create(t.Context()))
	c.count()
	return c, config
}

// count returns the calls since the last count.
func (c *counter) count() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.calls = nil }()
	return c.calls
}

func (c *counter) Connect(context.Context, *milvuspb.ConnectRequest) (*milvuspb.ConnectResponse, error) {
	return &milvuspb.ConnectResponse{Status: &commonpb.Status{}}, nil
}

func (c *counter) CreateCollection(_ context.Context, req *milvuspb.CreateCollectionRequest) (*commonpb.Status, error) {
	c.made = &schemapb.CollectionSchema{}
	return &commonpb.Status{}, proto.Unmarshal(req.GetSchema(), c.made)
}

func (c *counter) DescribeCollection(context.Context, *milvuspb.DescribeCollectionRequest) (*milvuspb.DescribeCollectionResponse, error) {
	return &milvuspb.DescribeCollectionResponse{Status: &commonpb.Status{}, Schema: c.made}, nil
}

func (c *counter) DescribeIndex(context.Context, *milvuspb.DescribeIndexRequest) (*milvuspb.DescribeIndexResponse, error) {
	reply := &milvuspb.DescribeIndexResponse{Status: &commonpb.Status{}}
	for field, index := range map[string]string{table.FieldVector: "FLAT", table.FieldWords: "SPARSE_INVERTED_INDEX"} {
		params := []*commonpb.KeyValuePair{{Key: "index_type", Value: index}, {Key: "metric_type", Value: "IP"}}
		reply.IndexDescriptions = append(reply.IndexDescriptions, &milvuspb.IndexDescription{FieldName: field, IndexName: field, Params: params, State: commonpb.IndexState_Finished})
	}
	return reply, nil
}

func (c *counter) GetLoadState(context.Context, *milvuspb.GetLoadStateRequest) (*milvuspb.GetLoadStateResponse, error) {
	return &milvuspb.GetLoadStateResponse{Status: &commonpb.Status{}, State: commonpb.LoadState_LoadStateLoaded}, nil
}

// found returns the fields of the rows that an expression selects.
func (c *counter) found(expr string, fields []string) ([]table.Row, []*schemapb.FieldData) {
	var rows []table.Row
	for _, r := range c.rows {
		turn := table.SystemKey("turn-") // by which the rows of turns are asked for
		if expr == "" && r.Sequence != table.SystemSequence || strings.Contains(expr, strconv.Quote(r.Key)) ||
			strings.Contains(expr, strconv.Quote(turn)) && strings.HasPrefix(r.Key, turn) {
			rows = append(rows, r)
		}
	}
	var columns []*schemapb.FieldData
	for _, column := range table.Columns(rows, c.schema, table.NewFormula(1.2, .75, 2)) {
		if slices.Contains(fields, column.Name()) {
			columns = append(columns, column.FieldData())
		}
	}
	return rows, columns
}

func (c *counter) Query(_ context.Context, req *milvuspb.QueryRequest) (*milvuspb.QueryResults, error) {
	_, columns := c.found(req.GetExpr(), req.GetOutputFields())
	return &milvuspb.QueryResults{Status: &commonpb.Status{}, FieldsData: columns, OutputFields: req.GetOutputFields()}, nil
}

func (c *counter) Search(ctx context.Context, req *milvuspb.SearchRequest) (*milvuspb.SearchResults, error) {
	dense := slices.ContainsFunc(req.GetSearchParams(), func(p *commonpb.KeyValuePair) bool {
		return p.GetKey() == "anns_field" && p.GetValue() == table.FieldVector
	})
	switch {
	case dense && req.GetDsl() != "":
		close(c.held)
	case dense:
		select {
		case <-c.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	rows, columns := c.found(req.GetDsl(), req.GetOutputFields())
	keys, scores := make([]string, len(rows)), make([]float32, len(rows))
	for i, r := range rows {
		keys[i], scores[i] = r.Key, r.Entry.Vector[0]*float32(math.Sqrt(.1))+r.Entry.Vector[1]*float32(math.Sqrt(.9))
	}
	return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: &schemapb.SearchResultData{
		NumQueries: 1, TopK: int64(len(rows)), Topks: []int64{int64(len(rows))}, Scores: scores, FieldsData: columns, OutputFields: req.GetOutputFields(),
		Ids: &schemapb.IDs{IdField: &schemapb.IDs_StrId{StrId: &schemapb.StringArray{Data: keys}}},
	}}, nil
}

// A collection that is there is opened with few calls, and a hybrid search makes three:
// the dense one is still under way when the third asks for the cosines.
func TestCalls(t *testing.T) {
	c, config := newCounter(t)
	s := openStore(t, config)
	mustOpen(t, s)
	if got := c.count(); len(got) > 7 {
		t.Errorf("opening takes %d calls: %v", len(got), got)
	}
	opened := s.collection("c").searcher
	for _, test := range []struct {
		what     string
		searcher *Searcher
		calls    int
	}{
		{"the cosines are asked for", &Searcher{View: opened.View, Log: opened.Log}, 3},
		{"the vectors are read", opened, 3},
		{"the vectors are known", opened, 2},
	} {
		c.held = make(chan struct{})
		if test.calls == 2 {
			close(c.held)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a search that waits for itself fails
		defer cancel()
		q := sdk.Query{Text: "tea number3", Vector: []float32{1, 3}}
		hits, err := test.searcher.Search(ctx, sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 4}, []sdk.Query{q})
		must.Do(t, err)
		dense, lexical := hits[0].Dense, hits[0].Lexical
		if len(dense) != 4 || len(lexical) != 4 || lexical[0].ID != "entry 3" || math.Abs(float64(lexical[0].Dense)-1) > 1e-6 {
			t.Errorf("%s: %+v", test.what, hits[0])
		}
		if got := c.count(); len(got) != test.calls {
			t.Errorf("%s: a hybrid search takes %d calls, want %d: %v", test.what, len(got), test.calls, got)
		}
	}
}
