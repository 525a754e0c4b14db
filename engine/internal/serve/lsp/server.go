package lsp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
)

// server serves one editor. It handles one request after the other.
type server struct {
	options   Options
	rpc       *jrpc2.Server
	exit      chan struct{}
	documents map[string]*document // by URI; a change replaces the document
	shutdown  bool
}

// set checks a document's new text, and publishes its diagnostics.
func (s *server) set(ctx context.Context, uri string, version int, src string) {
	d := &document{uri: uri, path: pathOf(uri), version: version, text: newText(src), root: outline([]byte(src))}
	diags := s.check(ctx, d)
	s.documents[uri] = d
	s.publish(publishParams{URI: uri, Version: version, Diagnostics: d.diagnostics(diags)})
}

func (s *server) didOpen(ctx context.Context, p didOpenParams) error {
	s.set(ctx, p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text)
	return nil
}

func (s *server) didChange(ctx context.Context, p didChangeParams) error {
	if n := len(p.ContentChanges); n > 0 {
		s.set(ctx, p.TextDocument.URI, p.TextDocument.Version, p.ContentChanges[n-1].Text)
	}
	return nil
}

// didSave checks the file again, since other files may have changed.
func (s *server) didSave(ctx context.Context, p documentParams) error {
	if d := s.documents[p.TextDocument.URI]; d != nil {
		s.set(ctx, d.uri, d.version, d.text.src)
	}
	return nil
}

func (s *server) didClose(_ context.Context, p documentParams) error {
	delete(s.documents, p.TextDocument.URI)
	s.publish(publishParams{URI: p.TextDocument.URI, Diagnostics: []diagnostic{}})
	return nil
}

func (s *server) completion(_ context.Context, p positionParams) ([]completion, error) {
	r, err := s.request(p)
	if err != nil {
		return nil, err
	}
	return r.complete(), nil
}

func (s *server) hover(_ context.Context, p positionParams) (*hover, error) {
	r, err := s.request(p)
	if err != nil {
		return nil, err
	}
	about, at, ok := r.hover()
	if !ok {
		return nil, nil
	}
	return &hover{Contents: markdown(about), Range: r.text.rangeOf(at)}, nil
}

func (s *server) definition(_ context.Context, p positionParams) (*location, error) {
	r, err := s.request(p)
	if err != nil {
		return nil, err
	}
	at, ok := r.definition()
	if !ok {
		return nil, nil
	}
	return &location{URI: r.uri, Range: r.text.rangeOf(at)}, nil
}

// formatting does not change a text that does not parse, like racflow fmt.
func (s *server) formatting(_ context.Context, p documentParams) ([]textEdit, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if _, diags := bounded.Parse([]byte(d.text.src), d.path); diags.HasErrors() {
		return []textEdit{}, nil
	}
	all := d.text.rangeOf(span{0, len(d.text.src)})
	return []textEdit{{Range: all, NewText: string(bounded.Format([]byte(d.text.src)))}}, nil
}

// Options configures Serve.
type Options struct {
	// Load holds the options for loading documents. Its Catalog is asked only for stages that Uses
	// names.
	Load    pipeline.Options
	Version string // of racflow
	Log     *slog.Logger
}

// errNotShutDown says that the client ended the server without shutting it down first, which the
// protocol treats as an error.
var errNotShutDown = errors.New("the editor ended the server without shutting it down")

// Serve speaks the Language Server Protocol with an editor until the editor ends it, in ends, or
// ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.WriteCloser, o Options) error {
	s := &server{options: o, documents: map[string]*document{}, exit: make(chan struct{})}
	s.rpc = jrpc2.NewServer(s.methods(), &jrpc2.ServerOptions{AllowPush: true, DisableBuiltin: true, Concurrency: 1})
	s.rpc.Start(channel.LSP(in, out))
	ended := make(chan error, 1)
	go func() { ended <- s.rpc.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-s.exit: // do not wait for the end of in
		if !s.shutdown {
			return errNotShutDown
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

func (s *server) initialize(context.Context, *jrpc2.Request) (any, error) {
	return map[string]any{
		"serverInfo": map[string]any{"name": "racflow", "version": s.options.Version},
		"capabilities": map[string]any{
			"positionEncoding":   "utf-16",
			"textDocumentSync":   map[string]any{"openClose": true, "change": 1, "save": map[string]any{}}, // 1: each change has the whole text
			"completionProvider": map[string]any{"triggerCharacters": []string{`"`, "."}},
			"hoverProvider":      true, "definitionProvider": true, "documentFormattingProvider": true,
		},
	}, nil
}

func (s *server) end(context.Context, *jrpc2.Request) (any, error) {
	s.shutdown = true
	return nil, nil
}

func (s *server) leave(context.Context, *jrpc2.Request) error {
	close(s.exit)
	return nil
}

// document returns an open document.
func (s *server) document(uri string) (*document, error) {
	d := s.documents[uri]
	if d == nil {
		return nil, jrpc2.Errorf(jrpc2.InvalidParams, "%s is not open", uri)
	}
	return d, nil
}

// request returns a request about a position in an open document.
func (s *server) request(p positionParams) (*request, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	return &request{document: d, catalog: known{s.options.Load.Catalog}.Require(filepath.Dir(d.path), d.required), place: locate(d.root, d.text.offset(p.Position))}, nil
}

// publish sends diagnostics to the editor.
func (s *server) publish(p publishParams) {
	if err := s.rpc.Notify(context.Background(), "textDocument/publishDiagnostics", p); err != nil {
		s.options.Log.Warn("diagnostics could not be sent", "error", err)
	}
}

// pathOf returns the path of a document. A document that is not a file, such as an unsaved
// document, is named by its URI, as if it were in the working directory.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return filepath.Base(uri)
	}
	return u.Path
}

// The supported part of the protocol, after the Language Server Protocol 3.17,
// https://microsoft.github.io/language-server-protocol/. Lines count from 0, characters are UTF-16
// code units.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string    `json:"uri"`
	Range textRange `json:"range"`
}

type textEdit struct {
	Range   textRange `json:"range"`
	NewText string    `json:"newText"`
}

type documentID struct {
	URI string `json:"uri"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type positionParams struct {
	TextDocument documentID `json:"textDocument"`
	Position     position   `json:"position"`
}

type didOpenParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

type didChangeParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []struct {
		Text string `json:"text"`
	} `json:"contentChanges"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range    textRange `json:"range"`
	Severity int       `json:"severity"` // 1 error, 2 warning
	Source   string    `json:"source"`
	Message  string    `json:"message"`
}

// The kinds of completions.
const (
	kindFunction = 3
	kindField    = 5
	kindVariable = 6
	kindModule   = 9 // a block
	kindProperty = 10
	kindValue    = 12
	kindKeyword  = 14
)

type completion struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *markup   `json:"documentation,omitempty"`
	TextEdit      *textEdit `json:"textEdit"`
	SortText      string    `json:"sortText"` // keeps the order of the descriptions
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *markup { return &markup{Kind: "markdown", Value: text} }

type hover struct {
	Contents *markup   `json:"contents"`
	Range    textRange `json:"range"`
}
