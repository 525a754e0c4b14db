package engine

import (
	"errors"
	"io"
	"os"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/source"
)

// Rows reads the items of an input.
type Rows struct {
	*source.Reader
	limit, read int
}

// Next returns the next row; io.EOF after the last one, or after Options.Limit.
func (r *Rows) Next() (source.Row, error) {
	if r.read++; r.limit > 0 && r.read > r.limit {
		return source.Row{}, io.EOF
	}
	return r.Reader.Next()
}

// input is the source of items: that of Options or of the file.
func (p *Pipeline) input() pipeline.Source {
	s := pipeline.Source{ID: "id", Text: "text", Label: "label"}
	if p.chosen.Input != nil {
		s = *p.chosen.Input
	}
	if path := p.workspace.options.Input; path != "" {
		s.Replace(path)
	}
	return s
}

// Rows opens the input.
func (p *Pipeline) Rows() (*Rows, error) {
	o, s := p.workspace.options, p.input()
	if s.Path == "" {
		return nil, optionError("Input", "pipeline %[2]q has no input block: name a file with %[1]s", p.chosen.Name)
	}
	if s.Path == "-" && o.Stdin == nil {
		return nil, errors.New("the input is standard input, and Options.Stdin has none")
	}
	r, err := s.Open(o.Stdin)
	if err != nil {
		return nil, err
	}
	return &Rows{Reader: r, limit: o.Limit}, nil
}

// InputPath is the file of items, "-" for Options.Stdin; empty: there is none.
func (p *Pipeline) InputPath() string { return p.input().Path }

// rereadable reports whether the input can be read more than once. Standard
// input and pipes cannot. That a file is not there shows when it is read.
func (p *Pipeline) rereadable() bool {
	path := p.InputPath()
	info, err := os.Stat(path)
	return path != "-" && (err != nil || info.Mode().IsRegular())
}

// Reads are the files that a run reads.
func (p *Pipeline) Reads() []string {
	all := []string{p.file.Path, p.InputPath()}
	for _, k := range p.chosen.Knowledge() {
		all = append(all, k.Source.Path)
	}
	return all
}
