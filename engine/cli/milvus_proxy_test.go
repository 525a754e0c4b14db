package cli

import (
	"context"
	"net"
	"path"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// milvusProxy passes calls on to a Milvus server, and records their methods.
type milvusProxy struct {
	engine *milvusEngine // as clients of the proxy see it
	server *grpc.ClientConn

	mu     sync.Mutex
	called map[string]bool // methods
}

func startProxy(t *testing.T, e *milvusEngine) *milvusProxy {
	t.Helper()
	conn, err := grpc.NewClient(e.address(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(asItIs{}), grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	p := &milvusProxy{engine: &milvusEngine{t: t, port: port, prefix: e.prefix}, server: conn, called: map[string]bool{}}
	s := grpc.NewServer(grpc.ForceServerCodec(asItIs{}), grpc.MaxRecvMsgSize(1<<30), grpc.UnknownServiceHandler(p.pass))
	go s.Serve(listener)
	t.Cleanup(func() { s.Stop(); conn.Close() })
	return p
}

// take returns the methods that were called since the last take.
func (p *milvusProxy) take() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	called := p.called
	p.called = map[string]bool{}
	return called
}

// pass handles a call: all calls of Milvus have one request and one reply.
func (p *milvusProxy) pass(_ any, stream grpc.ServerStream) error {
	var request, reply []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	p.mu.Lock()
	p.called[path.Base(method)] = true
	p.mu.Unlock()
	given, _ := metadata.FromIncomingContext(stream.Context())
	if err := p.server.Invoke(metadata.NewOutgoingContext(context.WithoutCancel(stream.Context()), given), method, &request, &reply); err != nil {
		return err
	}
	return stream.SendMsg(&reply)
}

// asItIs is a codec that passes messages on unread.
type asItIs struct{}

func (asItIs) Name() string                          { return "proto" }
func (asItIs) Marshal(message any) ([]byte, error)   { return *message.(*[]byte), nil }
func (asItIs) Unmarshal(data []byte, into any) error { *into.(*[]byte) = data; return nil }
