package server

import (
	"context"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Over is a server that is reached by a service instead of an address, as a simulated
// one is.
func Over(c Config, service milvuspb.MilvusServiceClient) (*Server, error) {
	// Only NewClient makes a client that works; its connection is never used.
	made, err := client.NewClient(context.Background(), client.Config{
		Address: "simulated", DisableConn: true, DialOptions: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
	})
	if err != nil {
		return nil, err
	}
	connected := made.(*client.GrpcClient)
	if err := connected.Close(); err != nil {
		return nil, err
	}
	connected.Service = service
	return &Server{Config: c, address: "simulated", connected: connected}, nil
}
