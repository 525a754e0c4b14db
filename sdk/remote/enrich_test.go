package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/remote"
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
		reply  *stagepb.Reply
		want   []sdk.Addition
		err    string
		failed int // passages
	}{
		"good":                         {&stagepb.Reply{Rows: good}, want, "", 0},
		"nothing to add":               {&stagepb.Reply{Rows: &stagepb.Rows{N: 3}}, make([]sdk.Addition, 3), "", 0},
		"one passage fails":            {&stagepb.Reply{Rows: good, Errors: []*stagepb.RowError{{Row: 2, Failure: failure}}}, want, "refused", 1},
		"a row per document":           {&stagepb.Reply{Rows: &stagepb.Rows{N: 2, Context: []string{"x", "y"}}}, nil, "malformed: 2 additions to 3 passages", 0},
		"no rows":                      {&stagepb.Reply{}, nil, "malformed: there are no rows", 0},
		"an error of no passage":       {&stagepb.Reply{Rows: good, Errors: []*stagepb.RowError{{Row: 3, Failure: failure}}}, nil, "malformed: error for row 3 of 3", 0},
		"the request fails as a whole": {&stagepb.Reply{Failure: failure}, nil, "refused", 0},
	} {
		t.Run(name, func(t *testing.T) {
			stage := &remote.Stage{Call: func(_ context.Context, req *stagepb.Request) (*stagepb.Reply, error) {
				if ids := req.GetEnrich().GetRows().GetId(); len(ids) != 2 {
					t.Errorf("documents %q were sent", ids)
				}
				return c.reply, nil
			}}
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
	silent := &remote.Stage{Call: func(context.Context, *stagepb.Request) (*stagepb.Reply, error) {
		t.Error("passages that are torn apart were sent")
		return nil, nil
	}}
	if _, err := silent.Enrich(t.Context(), []sdk.Passage{passages[0], passages[2], passages[1]}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("got %v", err)
	}
}
