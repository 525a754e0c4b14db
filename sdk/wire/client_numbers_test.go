package wire

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// answers is a plugin that gives a reply to each request, and is not fitted.
type answers struct {
	reply func(request any) proto.Message
}

func (a answers) Invoke(_ context.Context, _ string, request, reply any, _ ...grpc.CallOption) error {
	proto.Merge(reply.(proto.Message), a.reply(request))
	return nil
}

func (answers) Fit(context.Context, iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	return nil, errors.ErrUnsupported
}

// A wrong number from a store fails its query, or its page, and the error names the store.
func TestNumbersOfAStore(t *testing.T) {
	inf := float32(math.Inf(1))
	found, err := EncodeCandidates([][]sdk.Candidate{{{ID: "a", Score: 1}}, {{ID: "b", Score: 1, Dense: inf}}, {{ID: "c", Score: inf}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	page, err := EncodeEntries([]sdk.Entry{{ID: "a", Vector: []float32{1}}, {ID: "b", Vector: []float32{inf}}})
	if err != nil {
		t.Fatal(err)
	}
	// The second row had failed before: it keeps its error.
	failures := EncodeRowErrors(sdk.RowErrors{1: errors.New("its own")})
	s := &Stage{Name: "store.k: plugin s 1.0.0", Conn: answers{func(request any) proto.Message {
		if _, ok := request.(*stagepb.ScanRequest); ok {
			return &stagepb.ScanReply{Rows: page}
		}
		return &stagepb.RowsReply{Rows: found, Errors: failures}
	}}}
	lists, err := s.Retrieve(t.Context(), "c", sdk.Ranking{}, make([]sdk.Query, 3))
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 2 || failed[1].Error() != "its own" ||
		!strings.HasPrefix(failed[2].Error(), `store.k: plugin s 1.0.0 returned score +Inf for candidate 1;`) || lists[0][0].ID != "a" {
		t.Errorf("got %v, %v", lists, err)
	}
	if _, err := s.Scan(t.Context(), "c", sdk.Scan{}); err == nil || !strings.Contains(err.Error(), `plugin s 1.0.0 returned a vector with +Inf at position 1; its numbers are finite (entry 2 of a page)`) {
		t.Errorf("got %v", err)
	}
}
