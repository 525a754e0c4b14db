package milvus

import (
	"context"
	"log/slog"

	"github.com/racflow/racflow/plugins/store/milvus/internal/attached"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/plugins/store/milvus/internal/table"
	"github.com/racflow/racflow/sdk"
)

// config are the arguments of the stage.
type config struct {
	server.Config
	table.Options
	attached.Arguments
}

// Stage describes the store.
func Stage() sdk.Stage {
	return sdk.StoreStage("milvus", "Vector and BM25 search on a Milvus server, Milvus Lite or Zilliz Cloud.", open, sdk.Network(), sdk.Filters(), sdk.Attaches("collection"), sdk.Validates(config.check))
}

// check reports what tags cannot say.
func (c config) check() error {
	_, err := server.New(c.Config)
	return err
}

// open connects nothing: that waits until a collection is opened or attached.
func open(_ context.Context, setup sdk.Setup, c config) (sdk.Store, error) {
	s, err := server.New(c.Config)
	if err != nil {
		return nil, err
	}
	log := setup.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if c.Collection != "" {
		return &reader{server: s, arguments: c.Arguments, params: c.SearchParams, log: log}, nil
	}
	return &store{server: s, options: c.Options, log: log, collections: map[string]*collection{}}, nil
}
