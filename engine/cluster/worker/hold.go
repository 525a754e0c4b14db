package worker

import (
	"context"
	"log/slog"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/governor"
)

type holding struct{}

func (h *holding) begin(ctx context.Context, r *bus.Run, g *governor.Governor, log *slog.Logger) error {
	return nil
}

func (h *holding) end() {}
