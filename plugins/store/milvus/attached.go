package milvus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/milvus-io/milvus-sdk-go/v2/client"

	"github.com/racflow/racflow/plugins/store/milvus/internal/attached"
	"github.com/racflow/racflow/plugins/store/milvus/internal/server"
	"github.com/racflow/racflow/sdk"
)

// reader implements sdk.Attacher: it serves one collection that somebody else makes.
// It is safe for concurrent use.
type reader struct {
	server    *server.Server
	arguments attached.Arguments
	params    map[string]string
	log       *slog.Logger

	mu    sync.Mutex
	found map[string]*attached.Collection // by name: searches of one go on when an alias leads to another
}

// Attach implements sdk.Attacher.
func (r *reader) Attach(ctx context.Context) (sdk.Attached, error) {
	found, err := attached.Attach(ctx, r.call, r.arguments, r.params, r.log)
	if err != nil {
		return sdk.Attached{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = map[string]*attached.Collection{}
	}
	r.found[found.Name] = found
	return found.Describe(), nil
}

// call gives package attached the raw service: the SDK knows neither functions nor
// searches with a text.
func (r *reader) call(ctx context.Context, what string, do func(context.Context, attached.Service) error) error {
	return r.server.Call(ctx, what, func(ctx context.Context, c *client.GrpcClient, _ int) error { return do(ctx, c.Service) })
}

func (r *reader) collection(name string) (*attached.Collection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.found[name]; found != nil {
		return found, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not attached", name))
}

func (r *reader) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	c, err := r.collection(name)
	if err != nil {
		return nil, err
	}
	return c.Search(ctx, search, queries)
}

func (r *reader) Get(ctx context.Context, name string, ids []string) ([]sdk.Entry, error) {
	c, err := r.collection(name)
	if err != nil {
		return nil, err
	}
	return c.Get(ctx, ids)
}

func (r *reader) Scan(ctx context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	c, err := r.collection(name)
	if err != nil {
		return sdk.Page{}, err
	}
	return c.Scan(ctx, scan)
}

var errReadOnly = sdk.Invalid(errors.New("a collection that somebody else makes is read only: leave out the argument collection to build one"))

func (r *reader) Open(context.Context, string, sdk.Schema) (sdk.Collection, error) {
	return sdk.Collection{}, errReadOnly
}
func (r *reader) Put(context.Context, string, []sdk.Entry) error { return errReadOnly }
func (r *reader) Delete(context.Context, string, []string) error { return errReadOnly }
func (r *reader) Commit(context.Context, string, []byte) error   { return errReadOnly }
func (r *reader) Drop(context.Context, string) error             { return errReadOnly }
func (r *reader) List(context.Context) ([]sdk.Collection, error) { return nil, nil }
func (r *reader) Close() error                                   { return r.server.Close() }
