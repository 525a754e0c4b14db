package wire

import (
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

const (
	// ProtocolVersion is the version of sdk/proto that this package speaks.
	ProtocolVersion = 2
	// Minor counts what was added to that version.
	Minor = 0
	// LeastMinor is the oldest Minor of the engine that plugins of this SDK work with.
	LeastMinor = 0
	// CookieKey is the environment variable by which a plugin knows that
	// racflow has started it.
	CookieKey = "RACFLOW_PLUGIN"
	// CookieValue is what CookieKey must be set to.
	CookieValue = "b6c0ce8b-stage"
	// StageKey is the environment variable by which a program knows that it has
	// been started to run one of its own stages. Its value is for people.
	StageKey = "RACFLOW_STAGE"
	// TokenKey is the metadata that carries the token of the service Host.
	TokenKey = "racflow-token"
)

const (
	// Window is how many calls a plugin gets at a time: as many items can wait for a
	// language model at a time.
	Window = 256
	// MaxMessage is the size of the largest message in bytes, both ways.
	MaxMessage = 64 << 20
	// MaxHandle is the size of the largest handle of pending work in bytes.
	MaxHandle = 64 << 10

	flowWindow = 16 << 20 // bytes in flight: enough that a large batch is not sent in steps
	buffer     = 256 << 10
)

// Handshake is what host and plugin check of each other before they speak.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   CookieKey,
		MagicCookieValue: CookieValue,
	}
}

// ServerOptions are the limits of a plugin's gRPC server, and what takes the trace of a call
// from its metadata.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(flowWindow), grpc.InitialConnWindowSize(flowWindow),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		grpc.ChainUnaryInterceptor(receiveUnary), grpc.ChainStreamInterceptor(receiveStream),
	}
}

// DialOptions are the same limits for the host's end, and what puts the trace there.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(flowWindow), grpc.WithInitialConnWindowSize(flowWindow),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer),
		grpc.WithChainUnaryInterceptor(sendUnary), grpc.WithChainStreamInterceptor(sendStream),
		grpc.WithIdleTimeout(0), // a plugin that nobody calls for half an hour has not ended
	}
}
