package lsp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"

	"github.com/racflow/racflow/engine/pipeline"
)

// Options are what Serve needs.
type Options struct {
	// Load is what documents are loaded with. Its Catalog is asked for what Uses
	// names, and for nothing else.
	Load    pipeline.Options
	Version string // of racflow
	Log     *slog.Logger
}

// ErrNotShutDown is the error of a client that ends the server without shutting it
// down first, which the protocol asks to be told apart.
var ErrNotShutDown = errors.New("the editor ended the server without shutting it down")

// Serve speaks the Language Server Protocol with an editor until the editor ends it,
// in ends, or ctx does.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser, o Options) error {
	s := &server{options: o, documents: map[string]*document{}, exit: make(chan struct{})}
	s.checks = checks{run: s.check, ends: map[string]context.CancelFunc{}}
	s.rpc = jrpc2.NewServer(s.methods(), &jrpc2.ServerOptions{AllowPush: true, DisableBuiltin: true, Concurrency: 1})
	s.rpc.Start(channel.LSP(in, out))
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Wait() }()
	defer s.checks.stop()
	select {
	case err := <-ended:
		return err
	case <-s.exit: // in may stay open
		if !s.shutdown {
			return ErrNotShutDown
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// server is the work for one editor.
type server struct {
	options Options
	rpc     *jrpc2.Server
	checks  checks
	exit    chan struct{}

	mu          sync.Mutex
	documents   map[string]*document // by URI; one that changes is replaced
	initialized bool
	shutdown    bool
}

func (s *server) methods() handler.Map {
	return handler.Map{
		"initialize":              handler.New(s.initialize),
		"shutdown":                handler.New(s.end),
		"exit":                    handler.New(s.leave),
		"textDocument/didOpen":    handler.New(s.didOpen),
		"textDocument/didChange":  handler.New(s.didChange),
		"textDocument/didSave":    handler.New(s.didSave),
		"textDocument/didClose":   handler.New(s.didClose),
		"textDocument/completion": handler.New(s.completion),
		"textDocument/hover":      handler.New(s.hover),
		"textDocument/definition": handler.New(s.definition),
		"textDocument/formatting": handler.New(s.formatting),
	}
}

func (s *server) initialize(context.Context, *jrpc2.Request) (initializeResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initialized = true
	return initializeResult{
		ServerInfo: serverInfo{Name: "racflow", Version: s.options.Version},
		Capabilities: capabilities{
			PositionEncoding:   "utf-16",
			TextDocumentSync:   syncOptions{OpenClose: true, Change: 1},
			CompletionProvider: completionOptions{TriggerCharacters: []string{`"`, "."}},
			HoverProvider:      true, DefinitionProvider: true, FormattingProvider: true,
		},
	}, nil
}

func (s *server) end(context.Context, *jrpc2.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutdown = true
	return nil, nil
}

func (s *server) leave(context.Context, *jrpc2.Request) error {
	close(s.exit)
	return nil
}

// The codes of requests that come before initialize and after shutdown.
const (
	codeNotInitialized jrpc2.Code = -32002
	codeInvalidRequest jrpc2.Code = -32600
)

// document returns an open document.
func (s *server) document(uri string) (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.documents[uri]
	switch {
	case !s.initialized:
		return nil, codeNotInitialized.Err()
	case s.shutdown:
		return nil, codeInvalidRequest.Err()
	case d == nil:
		return nil, jrpc2.Errorf(jrpc2.InvalidParams, "%s is not open", uri)
	}
	return d, nil
}

// request is a question about a place in an open document.
func (s *server) request(p positionParams) (*request, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	return &request{document: d, catalog: newKnown(s.options.Load.Catalog).require(filepath.Dir(d.path), d.required), place: locate(d.root, d.text.offset(p.Position))}, nil
}

// publish sends diagnostics to the editor.
func (s *server) publish(p publishParams) {
	if err := s.rpc.Notify(context.Background(), "textDocument/publishDiagnostics", p); err != nil {
		s.options.Log.Warn("diagnostics could not be sent", "error", err)
	}
}

// pathOf is the path of a document. One that is not a file, such as an unsaved one,
// is named by its URI, as if it stood in the working directory.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return filepath.Base(uri)
	}
	path := u.Path
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // file:///C:/x
		path = path[1:]
	}
	return filepath.FromSlash(path)
}
