package cli

import (
	"context"
	"net"
	"path"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// milvusProxy passes calls on to a Milvus server until it is to be cut off: after so many writes nothing
// gets through any more, as if the machine in front of it had lost its power.
type milvusProxy struct {
	engine *milvusEngine // as those see it who are before the proxy
	server *grpc.ClientConn

	mu     sync.Mutex
	writes int             // that are passed on; below 0: all
	cut    chan struct{}   // closed once a write was one too many
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
	p := &milvusProxy{
		engine: &milvusEngine{t: t, port: port, prefix: e.prefix}, server: conn,
		writes: -1, cut: make(chan struct{}), called: map[string]bool{},
	}
	s := grpc.NewServer(grpc.ForceServerCodec(asItIs{}), grpc.MaxRecvMsgSize(1<<30), grpc.UnknownServiceHandler(p.pass))
	go s.Serve(listener)
	t.Cleanup(func() { s.Stop(); conn.Close() })
	return p
}

// cutAfter lets so many writes pass from now on, below 0 all, and returns what is closed at the next one.
func (p *milvusProxy) cutAfter(writes int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.cut = writes, make(chan struct{})
	return p.cut
}

// take returns the methods that were called since it was called last.
func (p *milvusProxy) take() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	called := p.called
	p.called = map[string]bool{}
	return called
}

// admit reports whether a call gets through, and keeps its method in mind.
func (p *milvusProxy) admit(method string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.called[method] = true
	select {
	case <-p.cut:
		return false
	default:
	}
	if p.writes < 0 || !changes(method) {
		return true
	}
	if p.writes == 0 {
		close(p.cut)
		return false
	}
	p.writes--
	return true
}

// changes reports whether a method changes something on a server.
func changes(method string) bool {
	for _, verb := range []string{"Create", "Drop", "Insert", "Upsert", "Delete"} {
		if strings.HasPrefix(method, verb) {
			return true
		}
	}
	return false
}

// pass handles a call: all of Milvus's have one request and one reply.
func (p *milvusProxy) pass(_ any, stream grpc.ServerStream) error {
	var request, reply []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	if !p.admit(path.Base(method)) {
		return status.Error(codes.Unavailable, "cut off")
	}
	given, _ := metadata.FromIncomingContext(stream.Context())
	if err := p.server.Invoke(metadata.NewOutgoingContext(context.WithoutCancel(stream.Context()), given), method, &request, &reply); err != nil {
		return err
	}
	return stream.SendMsg(&reply)
}

// asItIs is a codec of messages that nobody looks into.
type asItIs struct{}

func (asItIs) Name() string                          { return "proto" }
func (asItIs) Marshal(message any) ([]byte, error)   { return *message.(*[]byte), nil }
func (asItIs) Unmarshal(data []byte, into any) error { *into.(*[]byte) = data; return nil }
