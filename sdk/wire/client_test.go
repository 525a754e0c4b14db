package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// blunt is a plugin that answers with a gRPC status.
type blunt struct {
	stagepb.UnimplementedStageServer
	code codes.Code
}

func (blunt) Describe(context.Context, *stagepb.DescribeRequest) (*stagepb.DescribeReply, error) {
	return &stagepb.DescribeReply{Name: "blunt"}, nil
}

func (b blunt) Sample(context.Context, *stagepb.SampleRequest) (*stagepb.RowsReply, error) {
	return nil, status.Error(b.code, "its own words")
}

// A plugin's status is never mistaken for the end of its process, and the error says what to do.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		code codes.Code
		want sdk.Code
		text string
	}{
		{codes.Unavailable, sdk.CodeInternal, "with the status Unavailable (its own words)"},
		{codes.Canceled, sdk.CodeInternal, "belongs into a reply's failure"},
		{codes.Unknown, sdk.CodeInternal, "belongs into a reply's failure"},
		{codes.Unimplemented, sdk.CodeInvalid, "no method /racflow.stage.v2.Stage/Sample, which its description promises; update the plugin"},
		{codes.ResourceExhausted, sdk.CodeInvalid, "use smaller batches"},
		{codes.DeadlineExceeded, sdk.CodeDeadline, "deadline"},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			conn := listen(t, func(g *grpc.Server) { stagepb.RegisterStageServer(g, blunt{code: c.code}) })
			if _, err := stagepb.NewStageClient(conn).Describe(t.Context(), &stagepb.DescribeRequest{}); err != nil {
				t.Fatal(err)
			}
			stage := &wire.Stage{Conn: wire.NewConn(conn)}
			_, err := stage.Sample(t.Context(), sdk.Batch{})
			if errors.Is(err, wire.ErrLost) || sdk.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v with code %v, want %q with %v", err, sdk.CodeOf(err), c.text, c.want)
			}
			if _, ok := stage.Conn.(*wire.Conn).Alive(t.Context()); !ok {
				t.Error("a plugin that has no method Alive counts as dead")
			}
		})
	}
}

// Later results must be announced in the plugin's description.
func TestPendingIsAnnounced(t *testing.T) {
	voter, files := refer(t, sdk.KindSample)
	voter.Pends, files.name = false, "Sample-pending"
	_, err := voter.Sample(t.Context(), sdk.Batch{Items: []sdk.Item{{ID: "3", Text: "later"}}})
	if later := new(sdk.Pending); errors.As(err, &later) || err == nil || !strings.Contains(err.Error(), "its description does not say") {
		t.Errorf("got %v", err)
	}
}

// A stage resolves only values that a file could have given.
func TestDescribed(t *testing.T) {
	info := reference.Stages[6]
	for resolved, want := range map[string]string{
		`{"precision": "int8"}`:  "",
		`{"precision": "int16"}`: "precision",
		`{"colour": "red"}`:      "there is no such argument",
		`[]`:                     "not a JSON object",
	} {
		_, err := wire.Described(info, "", &stagepb.ConfigureReply{ResolvedJson: []byte(resolved)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", resolved, err, want)
		}
	}
}
