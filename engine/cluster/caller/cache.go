package caller

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/cluster/answers"
	"github.com/racflow/racflow/engine/cluster/bus"
)

// answering is this machine's cache of answers, of which workers may ask, and into which theirs come.
type answering struct {
	folder *cache.Cache
	server *answers.Server
}

// serveAnswers begins it; nil: there is no state folder.
func (c *Caller) serveAnswers(ctx context.Context, run *bus.Run) (*answering, error) {
	if c.o.State == "" {
		return nil, nil
	}
	folder, err := cache.Open(filepath.Join(c.o.State, engine.CacheFolder), c.o.Log)
	if err != nil {
		return nil, err
	}
	server, err := answers.Serve(context.WithoutCancel(ctx), run, folder, c.o.Log)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &answering{folder, server}, nil
}

// close ends it. With all, everything is here then that workers have kept at the servers.
func (a *answering) close(ctx context.Context, all bool) error {
	if a == nil {
		return nil
	}
	var err error
	if all {
		err = a.server.Bring(ctx)
	}
	return errors.Join(err, a.server.Close(), a.folder.Close())
}

// bring takes all answers of a run here that is about to be removed.
func (c *Caller) bring(ctx context.Context, run *bus.Run) error {
	a, err := c.serveAnswers(ctx, run)
	if err != nil {
		return err
	}
	return a.close(ctx, true)
}

// forget forgets how many answers of a run are here.
func (c *Caller) forgetAnswers(id string) error {
	if c.o.State == "" {
		return nil
	}
	return cache.ForgetCopied(filepath.Join(c.o.State, engine.CacheFolder), id)
}
