package lsp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/redact"
)

// pause is how long nobody types before a changed text is checked.
const pause = 100 * time.Millisecond

// checks runs the checks of documents, of each the latest alone: a newer one ends one
// that waits or is under way.
type checks struct {
	run func(ctx context.Context, uri string)

	mu    sync.Mutex
	ends  map[string]context.CancelFunc
	all   sync.WaitGroup
	ended bool
}

// start begins a check after a wait.
func (c *checks) start(uri string, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if end := c.ends[uri]; end != nil {
		end()
	}
	ctx, end := context.WithCancel(context.Background())
	c.ends[uri] = end
	c.all.Go(func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
			c.run(ctx, uri)
		}
	})
}

// cancel ends the check of a document that is closed.
func (c *checks) cancel(uri string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.ends[uri]; end != nil {
		end()
		delete(c.ends, uri)
	}
}

// stop ends all checks and waits for them.
func (c *checks) stop() {
	c.mu.Lock()
	c.ended = true
	for _, uri := range slices.Collect(maps.Keys(c.ends)) {
		c.ends[uri]()
	}
	c.mu.Unlock()
	c.all.Wait()
}

// check loads a document as it stands in the editor, and publishes what is wrong.
func (s *server) check(ctx context.Context, uri string) {
	s.mu.Lock()
	d, ok := s.documents[uri]
	s.mu.Unlock()
	if !ok {
		return
	}
	o := s.options.Load
	o.Text, o.Catalog = []byte(d.text.src), newKnown(o.Catalog)
	o.Secrets = &redact.Secrets{} // of this text alone: one that is being typed is another with each letter
	file, diags := pipeline.Load(ctx, d.path, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	now, ok := s.documents[uri]
	if ctx.Err() != nil || !ok || now.version != d.version {
		return // another check is of what there is now
	}
	checked := *now
	if len(file.Variables) > 0 {
		checked.file, checked.secrets = file, o.Secrets
	}
	if len(file.Required) > 0 {
		checked.required = file.Required
	}
	s.documents[uri] = &checked
	s.publish(publishParams{URI: uri, Version: d.version, Diagnostics: d.diagnostics(diags)})
}

// diagnostics are those of a check as an editor shows them.
func (d *document) diagnostics(all hcl.Diagnostics) []diagnostic {
	out := []diagnostic{}
	for _, given := range all {
		shown := diagnostic{Severity: int(given.Severity), Source: "racflow", Message: given.Summary}
		if given.Detail != "" {
			shown.Message += ": " + given.Detail
		}
		switch at := given.Subject; {
		case at == nil:
		case at.Filename == d.path:
			shown.Range = d.text.rangeOf(span{at.Start.Byte, at.End.Byte})
		default: // a file of variables: it is not what is edited
			shown.Message = at.String() + ": " + shown.Message
		}
		out = append(out, shown)
	}
	return out
}
