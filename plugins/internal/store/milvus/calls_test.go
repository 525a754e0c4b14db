package milvus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// counter is a server with one collection of ten entries that counts its calls. It
// finds all rows whose key an expression names, and without one all entries, by vectors
// the nearest four, and scores them by the cosine to (1, 3, 0, 0).
type counter struct {
	milvuspb.UnimplementedMilvusServiceServer
	schema sdk.Schema
	made   *schemapb.CollectionSchema
	rows   []table.Row

	mu    sync.Mutex
	calls []string
}

func newCounter(t *testing.T) (*counter, config) {
	c := &counter{schema: sdk.Schema{Dimension: 4, Analyzer: "standard"}}
	analyzer, err := support.NamedAnalyzer(c.schema.Analyzer)
	must.Do(t, err)
	frequencies := map[uint32]uint32{}
	words := 0
	for i := range 10 {
		text := fmt.Sprint("tea number", i)
		counts := table.CountWords(analyzer, "", text)
		for _, w := range counts.Words {
			frequencies[w.Word]++
		}
		words += counts.Length
		c.rows = append(c.rows, table.Row{
			Key: table.RowKey(fmt.Sprint("entry ", i)), Meta: []byte("{}"), Counts: counts,
			Entry: sdk.Entry{ID: fmt.Sprint("entry ", i), Text: text, Vector: table.UnitVector([]float32{1, float32(i), 0, 0})},
		})
	}
	last := record{Number: 1, ID: "id", State: "id", Parts: 1, Entries: 10, Words: int64(words), Lowest: 2}
	var content bytes.Buffer
	must.Do(t, gob.NewEncoder(&content).Encode(state{Note: []byte("note"), Frequencies: frequencies}))
	text, err := json.Marshal(last)
	must.Do(t, err)
	keys := last.keys()
	c.rows = append(c.rows, table.System(keys[0], string(text)), table.System(keys[1], base64.StdEncoding.EncodeToString(content.Bytes())))

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

// found returns those of all rows that an expression selects, and their fields.
func (c *counter) found(all []table.Row, expr string, fields []string) ([]table.Row, []*schemapb.FieldData) {
	var rows []table.Row
	for _, r := range all {
		_, prefix, _ := strings.Cut(expr, `>= "`) // by which system rows are asked for
		prefix, _, asked := strings.Cut(prefix, `"`)
		if expr == "" && !strings.HasPrefix(r.Key, table.SystemPrefix) || strings.Contains(expr, strconv.Quote(r.Key)) || asked && strings.HasPrefix(r.Key, prefix) {
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
	_, columns := c.found(c.rows, req.GetExpr(), req.GetOutputFields())
	return &milvuspb.QueryResults{Status: &commonpb.Status{}, FieldsData: columns, OutputFields: req.GetOutputFields()}, nil
}

func (c *counter) Search(_ context.Context, req *milvuspb.SearchRequest) (*milvuspb.SearchResults, error) {
	score := func(r table.Row) float32 {
		return r.Entry.Vector[0]*float32(math.Sqrt(.1)) + r.Entry.Vector[1]*float32(math.Sqrt(.9))
	}
	all := c.rows
	if req.GetDsl() == "" && slices.ContainsFunc(req.GetSearchParams(), func(p *commonpb.KeyValuePair) bool { return p.GetValue() == table.FieldVector }) {
		all = slices.SortedFunc(slices.Values(all[:10]), func(a, b table.Row) int { return cmp.Compare(score(b), score(a)) })[:4]
	}
	rows, columns := c.found(all, req.GetDsl(), req.GetOutputFields())
	keys, scores := make([]string, len(rows)), make([]float32, len(rows))
	for i, r := range rows {
		keys[i], scores[i] = r.Key, score(r)
	}
	return &milvuspb.SearchResults{Status: &commonpb.Status{}, Results: &schemapb.SearchResultData{
		NumQueries: 1, TopK: int64(len(rows)), Topks: []int64{int64(len(rows))}, Scores: scores, FieldsData: columns, OutputFields: req.GetOutputFields(),
		Ids: &schemapb.IDs{IdField: &schemapb.IDs_StrId{StrId: &schemapb.StringArray{Data: keys}}},
	}}, nil
}

// A collection that is there is opened with few calls. A hybrid search makes one for each leg, and a third for the
// cosines of what the vectors did not find where many are wanted.
func TestCalls(t *testing.T) {
	c, config := newCounter(t)
	s := openStore(t, config)
	_, err := s.Open(t.Context(), "c", c.schema)
	must.Do(t, err)
	if got := c.count(); len(got) > 7 {
		t.Errorf("opening takes %d calls: %v", len(got), got)
	}
	ranking := sdk.Ranking{Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: .1}, TopK: 2}
	for candidates, calls := range map[int]int{4: 2, 16_000: 3} {
		ranking.Search = sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: candidates}
		list := retrieve(t, s, ranking, sdk.Query{Text: "number9 number8 tea", Vector: []float32{1, 3, 0, 0}})[0]
		if len(list) != 2 || list[0].ID != "entry 8" || list[1].ID != "entry 9" || math.Abs(float64(list[0].Dense)-25/math.Sqrt(10*65)) > 1e-6 {
			t.Errorf("candidates %+v", list)
		}
		if got := c.count(); len(got) != calls || slices.ContainsFunc(got, func(call string) bool { return call != "Search" }) {
			t.Errorf("a hybrid search among %d takes the calls %v, want %d", candidates, got, calls)
		}
	}
}
