package attached

import (
	"context"
	"fmt"
	"slices"

	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"

	"github.com/racflow/racflow/plugins/store/milvus/internal/mapping"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
)

// noCollection names the collections that there are.
func noCollection(ctx context.Context, call Caller, name string) error {
	var names []string
	_ = call(ctx, "list the collections", func(ctx context.Context, s Service) error {
		reply, err := s.ShowCollections(ctx, &milvuspb.ShowCollectionsRequest{})
		names = reply.GetCollectionNames()
		return err
	})
	there := "the server shows none; look at address and database"
	if slices.Sort(names); len(names) > 0 {
		there = "the server has " + mapping.List(names)
	}
	return mapping.Wrong("collection", "there is no collection %q and no alias of that name: %s", name, there)
}

func (c *Collection) notLoaded() error {
	return mapping.Wrong("load", "collection %q is not in the server's memory: its owner has to load it, or the file says load = true", c.Name)
}

// explainError says what a failure of a call means for an attached collection.
func (c *Collection) explainError(err error) error {
	switch {
	case server.IsMissing(err):
		return sdk.Invalid(fmt.Errorf("collection %q is gone from the server; somebody dropped or renamed it: see to it, then start again: %w", c.Name, err))
	case server.IsNotLoaded(err):
		return sdk.Invalid(fmt.Errorf("collection %q is not in the server's memory any more: its owner has to load it; with load = true in the file the next start does", c.Name))
	}
	return err
}
