package wire_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// attaching is a plugin with a given reply to Attach.
type attaching struct {
	blunt
	reply *stagepb.AttachReply
}

func (a attaching) Attach(context.Context, *stagepb.AttachRequest) (*stagepb.AttachReply, error) {
	return a.reply, nil
}

func TestAttach(t *testing.T) {
	failed := &stagepb.Failure{Code: stagepb.Code_CODE_INVALID, Message: "there is no collection docs"}
	for name, c := range map[string]struct {
		plugin   stagepb.StageServer
		attaches bool
		want     string
	}{
		"it does not say that it can": {attaching{}, false, "the plugin cannot serve a collection that another program makes: use another store, or give the knowledge a source"},
		"it has no such method":       {blunt{code: codes.OK}, true, "the plugin has no method /racflow.stage.v2.Stage/Attach, which its description promises; update the plugin"},
		"it fails":                    {attaching{reply: &stagepb.AttachReply{Failure: failed}}, true, "there is no collection docs"},
		"it does not fit":             {attaching{reply: &stagepb.AttachReply{Errors: []*stagepb.ArgumentError{{Argument: "fields", Path: []string{"text"}, Message: "there is no such field"}}}}, true, `fields["text"]: there is no such field`},
		"it says nothing":             {attaching{reply: &stagepb.AttachReply{}}, true, "malformed: the attached collection has no name"},
		"no id":                       {attaching{reply: &stagepb.AttachReply{Attached: &stagepb.Attached{Name: "docs", Dimension: 2}}}, true, "malformed: the attached collection has no id"},
		"no dimension":                {attaching{reply: &stagepb.AttachReply{Attached: &stagepb.Attached{Name: "docs", Id: "1"}}}, true, "malformed: the attached collection has vectors of dimension 0"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := listen(t, func(g *grpc.Server) { stagepb.RegisterStageServer(g, c.plugin) })
			if _, err := stagepb.NewStageClient(conn).Describe(t.Context(), &stagepb.DescribeRequest{}); err != nil {
				t.Fatal(err) // NewConn takes over a connection on which a call has been answered
			}
			stage := &wire.Stage{Conn: wire.NewConn(conn), Attaches: c.attaches}
			_, err := stage.Attach(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(c.want, "malformed") != (sdk.CodeOf(err) == sdk.CodeInternal) {
				t.Errorf("got %v with code %v, want %q", err, sdk.CodeOf(err), c.want)
			}
		})
	}
}
