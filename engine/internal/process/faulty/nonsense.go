package faulty

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/serve"
	"github.com/racflow/racflow/sdk/support"
	"github.com/racflow/racflow/sdk/wire"
)

// Serve is the main function of the plugin. It sends the invalid replies that the texts request;
// serve.Plugin never sends any.
func Serve(stages []sdk.Stage) {
	go func() { // until the engine closes standard input
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if err := support.NoDump(); err != nil {
		fmt.Fprintln(os.Stderr, "warning:", err)
	}
	stderr := os.Stderr
	server := serve.NewServer(sdk.Plugin{Name: "faulty", Version: "1.2.3", Stages: stages}, slog.New(slog.NewJSONHandler(stderr, nil)))
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake(), Plugins: plugin.PluginSet{"stage": registrar{server: server}}, Logger: hclog.NewNullLogger(),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(append(options, wire.ServerOptions()...),
				grpc.MaxSendMsgSize(math.MaxInt32), grpc.StatsHandler(ender{}), grpc.ChainUnaryInterceptor((&spoiler{stderr: stderr}).spoil))...)
		},
	})
	server.Close()
}

type registrar struct {
	plugin.NetRPCUnsupportedPlugin
	server *serve.Server
}

func (r registrar) GRPCServer(_ *plugin.GRPCBroker, g *grpc.Server) error {
	r.server.Register(g)
	return nil
}

func (registrar) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, status.Error(codes.Unimplemented, "this is the plugin's end")
}

// ender ends the process in the midst of a reply of the fault "half".
type ender struct{ stats.Handler }

func (ender) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (ender) HandleConn(context.Context, stats.ConnStats)                       {}
func (ender) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (ender) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok && out.Length >= halfReply && out.Length < wire.MaxMessage {
		os.Exit(3)
	}
}

const halfReply = wire.MaxMessage / 2

// spoiler alters replies unless the stage of this process is harmless.
type spoiler struct {
	harmless bool
	stderr   *os.File // the original os.Stderr: go-plugin replaces it by one that is lost with the process
}

// spoil alters the reply to a request.
func (s *spoiler) spoil(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if c, ok := request.(*stagepb.ConfigureRequest); ok { // comes before all work
		var given struct{ Harmless bool }
		_ = json.Unmarshal(c.GetConfigJson(), &given)
		s.harmless, os.Stderr = given.Harmless, s.stderr
	}
	reply, err := handle(ctx, request)
	if err != nil {
		return reply, err
	}
	rows, ok := reply.(*stagepb.RowsReply)
	if !ok {
		return reply, nil
	}
	kind, texts := asking(request)
	for i, text := range texts {
		fault := of(kind, text)
		if s.harmless || fault == "" {
			continue
		}
		switch fault {
		case "short":
			rows.GetRows().N--
		case "long":
			rows.GetRows().N += 7 // large, so that no shorter reply compensates for it
		case "empty":
			return &stagepb.RowsReply{}, nil
		case "other":
			return &stagepb.AliveReply{Overdue: 7}, nil
		case "beyond":
			rows.Errors = append(rows.Errors, &stagepb.RowError{Row: uint32(len(texts)), Failure: &stagepb.Failure{Message: "which row?"}})
		case "again":
			for range 2 {
				rows.Errors = append(rows.Errors, &stagepb.RowError{Row: uint32(i), Failure: &stagepb.Failure{Message: "no, and no"}})
			}
		case "header":
			_ = grpc.SendHeader(ctx, nil)
			os.Exit(3)
		case "half":
			return &stagepb.RowsReply{Failure: &stagepb.Failure{Message: strings.Repeat("x", halfReply)}}, nil
		case "vast":
			return &stagepb.RowsReply{Failure: &stagepb.Failure{Message: strings.Repeat("x", wire.MaxMessage)}}, nil
		case "status":
			return nil, status.Error(codes.Internal, "out of order")
		case "absent":
			return nil, status.Error(codes.Unavailable, "come back later")
		case "cancelled":
			return nil, status.Error(codes.Canceled, "not today")
		}
	}
	return reply, nil
}

// asking returns the texts of a request and the kind of its stage.
func asking(request any) (sdk.Kind, []string) {
	switch r := request.(type) {
	case *stagepb.EmbedRequest:
		return sdk.KindEmbed, r.GetTexts()
	case *stagepb.ChunkRequest:
		return sdk.KindChunk, r.GetRows().GetText()
	case *stagepb.RerankRequest:
		return sdk.KindRerank, r.GetRows().GetText()
	case *stagepb.PromptRequest:
		return sdk.KindPrompt, r.GetRows().GetText()
	case *stagepb.SampleRequest:
		return sdk.KindSample, r.GetRows().GetText()
	case *stagepb.ElectRequest:
		return sdk.KindElect, r.GetRows().GetText()
	}
	return "", nil
}
