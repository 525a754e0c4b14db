package table

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
)

// The known metrics.
const (
	MetricCosine = "COSINE"
	MetricIP     = "IP"
	MetricL2     = "L2"
	MetricBM25   = "BM25"
)

// Rows are the rows of a collection, whether racflow or another program made it.
type Rows struct {
	Collection string   // its name on the server
	Partitions []string // none: all
	Key        string   // the primary key field
	WholeKeys  bool     // the key is a whole number, not a text
	// The consistency of reads; Default: as the collection's owner has set.
	Level     commonpb.ConsistencyLevel
	Timestamp uint64
	Default   bool
	// Call makes a call. It retries after temporary failures and explains other ones.
	Call func(ctx context.Context, what string, do Call) error
}

// Indexes returns, by field, the parameters of the indexes, including index_type and metric_type.
func (r Rows) Indexes(ctx context.Context) (map[string]map[string]string, error) {
	indexes := map[string]map[string]string{}
	err := r.Call(ctx, "describe the indexes of "+r.Collection, func(ctx context.Context, s *client.GrpcClient, _ int) error {
		reply, err := s.Service.DescribeIndex(ctx, &milvuspb.DescribeIndexRequest{CollectionName: r.Collection})
		for _, i := range reply.GetIndexDescriptions() {
			params := map[string]string{}
			for _, p := range i.GetParams() {
				params[p.GetKey()] = p.GetValue()
			}
			_ = json.Unmarshal([]byte(params["params"]), &params) // some servers pack them
			indexes[i.GetFieldName()] = params
		}
		return err
	})
	if noIndex.is(err) {
		err = nil
	}
	return indexes, err
}

// Query returns the first limit rows that an expression selects, in the order of their keys. It also returns about
// how many bytes they took.
func (r Rows) Query(ctx context.Context, expr string, fields []string, limit int) (all []*ReplyRow, size int, err error) {
	request := &milvuspb.QueryRequest{
		Expr: expr, OutputFields: fields,
		// Without the last two parameters a server may return any rows, in any order.
		QueryParams: Pairs("limit", strconv.Itoa(limit), "iterator", "True", "reduce_stop_for_best", "True"),
	}
	err = r.query(ctx, request, func(reply *milvuspb.QueryResults) (err error) {
		size = proto.Size(reply)
		all, err = ReplyRows(reply.GetFieldsData(), nil, r.Key)
		return err
	})
	return all, size, err
}

// Count returns the number of rows that an expression selects.
func (r Rows) Count(ctx context.Context, expr string) (n int, err error) {
	request := &milvuspb.QueryRequest{Expr: expr, OutputFields: []string{"count(*)"}}
	err = r.query(ctx, request, func(reply *milvuspb.QueryResults) error {
		for _, f := range reply.GetFieldsData() {
			if counts := f.GetScalars().GetLongData().GetData(); len(counts) == 1 {
				n = int(counts[0])
				return nil
			}
		}
		return errors.New("the server does not count")
	})
	return n, err
}

func (r Rows) query(ctx context.Context, request *milvuspb.QueryRequest, read func(*milvuspb.QueryResults) error) error {
	request.CollectionName, request.PartitionNames = r.Collection, r.Partitions
	request.ConsistencyLevel, request.GuaranteeTimestamp, request.UseDefaultConsistency = r.Level, r.Timestamp, r.Default
	return r.Call(ctx, "read rows of "+r.Collection, func(ctx context.Context, s *client.GrpcClient, _ int) error {
		reply, err := s.Service.Query(ctx, request)
		if err != nil {
			return err
		}
		return read(reply)
	})
}

// Search returns the rows that the server finds for each query, best first.
func (r Rows) Search(ctx context.Context, search SearchRequest) (lists [][]Scored, err error) {
	request, err := search.message()
	if err != nil {
		return nil, err
	}
	request.CollectionName, request.PartitionNames = r.Collection, r.Partitions
	request.ConsistencyLevel, request.GuaranteeTimestamp, request.UseDefaultConsistency = r.Level, r.Timestamp, r.Default
	lists = make([][]Scored, request.GetNq())
	err = r.Call(ctx, "search "+r.Collection, func(ctx context.Context, s *client.GrpcClient, _ int) error {
		reply, err := s.Service.Search(ctx, request)
		if err != nil {
			return err
		}
		lists, err = searched(reply.GetResults(), r.Key, int(request.GetNq()))
		return err
	})
	if noWords.is(err) {
		err = nil
	}
	return lists, err
}

const (
	// windowBytes is about how many bytes are read at a time.
	windowBytes = 4 << 20
	// Rows to read at a time. With vectors, the time of Milvus Lite 2 grows with the square of the rows.
	firstWindow, vectorWindow, plainWindow = 64, 250, 1000
)

// Walk calls f with the selected rows whose keys are greater than after, in the order of the keys, until f returns
// false. after is a string or an int64; nil: all rows.
func (r Rows) Walk(
	ctx context.Context, after any, expr string, fields []string, vectors bool, f func(*ReplyRow) (more bool, err error),
) error {
	most := plainWindow
	if vectors {
		most = vectorWindow
	}
	for window := firstWindow; ; {
		behind, err := r.behind(after)
		if err != nil {
			return err
		}
		found, size, err := r.Query(ctx, and(behind, expr), fields, window)
		if err != nil {
			return err
		}
		for _, row := range found {
			key := row.Value(r.Key)
			switch order := compareKeys(key, after); {
			case order == 0:
				continue // a duplicate key
			case order < 0:
				return fmt.Errorf("the server does not return the rows of collection %q in the order of their keys", r.Collection)
			}
			after = key
			if more, err := f(row); err != nil || !more {
				return err
			}
		}
		if len(found) < window {
			return nil
		}
		window = max(1, min(most, windowBytes/max(1, size/len(found))))
	}
}

// behind returns an expression for the rows with greater keys.
func (r Rows) behind(key any) (string, error) {
	switch key := key.(type) {
	case string:
		if literal, ok := quote(key); ok {
			return r.Key + " > " + literal, nil
		}
	case int64:
		return fmt.Sprintf("%s > %d", r.Key, key), nil
	case nil:
		return "", nil
	}
	return "", sdk.Invalid(fmt.Errorf("%.80q is a key of collection %q with characters that no expression of the server can hold", key, r.Collection))
}

// compareKeys compares keys in the order of the server. Every key is greater than nil.
func compareKeys(a, b any) int {
	switch b := b.(type) {
	case string:
		a, _ := a.(string)
		return cmp.Compare(a, b)
	case int64:
		a, _ := a.(int64)
		return cmp.Compare(a, b)
	}
	return 1
}
