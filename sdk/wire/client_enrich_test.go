package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

func TestEnrich(t *testing.T) {
	document, other := &sdk.Document{ID: "a", Text: "one two"}, &sdk.Document{ID: "b", Text: "three"}
	passages := []sdk.Passage{
		{Document: document, Chunk: sdk.Chunk{End: 3}}, {Document: document, Chunk: sdk.Chunk{Start: 4, End: 7}},
		{Document: other, Chunk: sdk.Chunk{End: 5}},
	}
	good := &stagepb.Rows{N: 3, Context: []string{"x", "", "z"}, Terms: &stagepb.Terms{Offsets: []uint32{0, 0, 2, 2}, Term: []string{"t", "u"}}}
	want := []sdk.Addition{{Context: "x"}, {Terms: []string{"t", "u"}}, {Context: "z"}}
	failure := &stagepb.Failure{Code: stagepb.Code_CODE_INVALID, Message: "refused"}
	for name, c := range map[string]struct {
		reply  *stagepb.RowsReply
		want   []sdk.Addition
		err    string
		failed int // passages
	}{
		"good":                         {&stagepb.RowsReply{Rows: good}, want, "", 0},
		"nothing to add":               {&stagepb.RowsReply{Rows: &stagepb.Rows{N: 3}}, make([]sdk.Addition, 3), "", 0},
		"one passage fails":            {&stagepb.RowsReply{Rows: good, Errors: []*stagepb.RowError{{Row: 2, Failure: failure}}}, want, "refused", 1},
		"a row per document":           {&stagepb.RowsReply{Rows: &stagepb.Rows{N: 2, Context: []string{"x", "y"}}}, nil, "malformed: 2 additions to 3 passages", 0},
		"no rows":                      {&stagepb.RowsReply{}, nil, "malformed: there are no rows", 0},
		"an error of no passage":       {&stagepb.RowsReply{Rows: good, Errors: []*stagepb.RowError{{Row: 3, Failure: failure}}}, nil, "malformed: error for row 3 of 3", 0},
		"the request fails as a whole": {&stagepb.RowsReply{Failure: failure}, nil, "refused", 0},
	} {
		t.Run(name, func(t *testing.T) {
			stage := &Stage{Conn: answers{func(request any) proto.Message {
				if ids := request.(*stagepb.EnrichRequest).GetRows().GetId(); len(ids) != 2 {
					t.Errorf("documents %q were sent", ids)
				}
				return c.reply
			}}}
			got, err := stage.Enrich(t.Context(), passages)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			var failed sdk.RowErrors
			if errors.As(err, &failed); len(failed) != c.failed {
				t.Errorf("%d passages failed, want %d", len(failed), c.failed)
			}
		})
	}
	silent := &Stage{Conn: answers{func(any) proto.Message {
		t.Error("passages that are torn apart were sent")
		return &stagepb.RowsReply{}
	}}}
	if _, err := silent.Enrich(t.Context(), []sdk.Passage{passages[0], passages[2], passages[1]}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
