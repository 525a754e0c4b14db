package lsp

import (
	"context"

	"github.com/racflow/racflow/engine/bounded"
)

// set keeps a document's new text.
func (s *server) set(uri string, version int, src string) {
	d := &document{uri: uri, path: pathOf(uri), version: version, text: newText(src), root: outline([]byte(src))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.documents[uri]; before != nil {
		d.file, d.secrets = before.file, before.secrets
	}
	s.documents[uri] = d
}

func (s *server) didOpen(_ context.Context, p didOpenParams) error {
	s.set(p.TextDocument.URI, p.TextDocument.Version, p.TextDocument.Text)
	s.checks.start(p.TextDocument.URI, 0)
	return nil
}

func (s *server) didChange(_ context.Context, p didChangeParams) error {
	if n := len(p.ContentChanges); n > 0 {
		s.set(p.TextDocument.URI, p.TextDocument.Version, p.ContentChanges[n-1].Text)
		s.checks.start(p.TextDocument.URI, pause)
	}
	return nil
}

// didSave checks again: other files may have changed.
func (s *server) didSave(_ context.Context, p documentParams) error {
	s.checks.start(p.TextDocument.URI, 0)
	return nil
}

func (s *server) didClose(_ context.Context, p documentParams) error {
	s.checks.cancel(p.TextDocument.URI)
	s.mu.Lock()
	defer s.mu.Unlock()
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

// formatting changes nothing in a text that does not parse, as racflow fmt does.
func (s *server) formatting(_ context.Context, p documentParams) ([]textEdit, error) {
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	if _, diags := bounded.Parse([]byte(d.text.src), d.path); diags.HasErrors() {
		return []textEdit{}, nil
	}
	return d.text.edits(string(bounded.Format([]byte(d.text.src)))), nil
}
