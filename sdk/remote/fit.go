package remote

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Fit streams requests to the plugin and returns its reply.
func (c *Conn) Fit(ctx context.Context, requests iter.Seq2[*stagepb.FitRequest, error]) (*stagepb.FitReply, error) {
	if err := c.acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.credits.Release(1)
	ctx, stop := context.WithCancel(ctx)
	defer stop() // a stream that is left open by an error ends with it
	const method = stagepb.Stage_Fit_FullMethodName
	stream, err := stagepb.NewStageClient(c.grpc).Fit(ctx)
	if err != nil {
		return nil, c.explain(ctx, method, err)
	}
	for request, err := range requests {
		if err != nil {
			return nil, err
		}
		if size := proto.Size(request); size > wire.MaxMessage {
			return nil, tooLarge(size)
		}
		if err := stream.Send(request); errors.Is(err, io.EOF) {
			break // the plugin has replied early; with what, is asked below
		} else if err != nil {
			return nil, c.explain(ctx, method, err)
		}
	}
	reply, err := stream.CloseAndRecv()
	return reply, c.explain(ctx, method, err)
}

// Fits reports whether the stage is an sdk.Fitter.
func (s *Stage) Fits() bool { return s.FitsFirst }

// Fit implements sdk.Fitter.
func (s *Stage) Fit(ctx context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	reply, err := s.Conn.Fit(ctx, func(yield func(*stagepb.FitRequest, error) bool) {
		for batch, err := range rows {
			var in *stagepb.Rows
			if err == nil {
				in, err = wire.EncodeTraining(batch, s.FitReads)
			}
			if !yield(&stagepb.FitRequest{Rows: in}, err) || err != nil {
				return
			}
		}
	})
	if err == nil && reply.GetFailure() != nil {
		err = wire.DecodeFailure(reply.GetFailure())
	}
	return err
}
