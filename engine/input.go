package engine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/racflow/racflow/engine/document"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/plugin/lock"
	"github.com/racflow/racflow/engine/reviewed"
	"github.com/racflow/racflow/engine/source"
)

// Rows reads the items of an input.
type Rows struct {
	*source.Reader
	limit int

	read  atomic.Int64 // rows
	ended atomic.Bool
}

// Next returns the next row; io.EOF after the last one, or after Options.Limit.
func (r *Rows) Next() (source.Row, error) {
	if r.limit > 0 && r.read.Load() >= int64(r.limit) {
		r.ended.Store(true)
		return source.Row{}, io.EOF
	}
	row, err := r.Reader.Next()
	if err == nil {
		r.read.Add(1)
	} else if errors.Is(err, io.EOF) {
		r.ended.Store(true)
	}
	return row, err
}

// Total is how many rows there will have been; about: that is estimated, by which part of
// the files' bytes those so far took. 0: it is not known. Any goroutine may call it at any time.
func (r *Rows) Total() (rows int64, about bool) {
	rows = r.read.Load()
	if r.ended.Load() {
		return rows, false
	}
	bytes, size := r.Progress()
	if rows == 0 || bytes <= 0 || bytes >= size { // the last bytes have been read, but not their rows
		return int64(r.limit), false
	}
	rows = int64(float64(rows) * float64(size) / float64(bytes))
	if r.limit > 0 && rows >= int64(r.limit) {
		return int64(r.limit), false
	}
	return rows, true
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
	if r := p.opened; r != nil {
		p.opened = nil
		return r, nil
	}
	m := s.Mapping()
	m.Fields = true
	r, err := source.Open(s.Path, s.Form, m, o.Stdin)
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
	_, err := os.Stat(path)
	return path != "-" && (err != nil && !source.IsGlob(path) || source.Regular(path))
}

// searched is the knowledge that the last retrieve stage searches; nil: there is none.
func (p *Pipeline) searched() (block *pipeline.Knowledge) {
	for _, s := range p.chosen.Stages {
		if s.Retrieve != nil && s.Enabled {
			block = s.Retrieve.From
		}
	}
	return block
}

// decided is what people have decided about items.
func (p *Pipeline) decided() reviewed.Decisions {
	block := p.searched()
	if block == nil {
		return nil
	}
	rows, _ := reviewed.Read(block.Reviewed()) // the building of the knowledge reports errors
	return reviewed.Of(rows)
}

// Reads are the files that a run reads.
func (p *Pipeline) Reads() []string {
	all := []string{p.file.Path}
	read := func(path string) {
		if files, err := source.Files(path); err == nil {
			all = append(all, files...)
		}
	}
	read(p.InputPath())
	for _, k := range p.chosen.Knowledge() {
		for _, s := range k.Sources {
			if all = append(all, s.Path); s.Documents == nil && !s.Reviewed {
				read(s.Path)
			}
		}
	}
	return all
}

// Depends are the files, beside the input, on whose content the answers depend: files are the
// pipeline file and what its expressions read, files of variables, the lock of plugins, and
// files that arguments of stages name; rows are the sources of rows, which may be globs, and
// folders those of documents.
func (p *Pipeline) Depends() (files, rows []string, folders []document.Set) {
	add := func(path string) {
		if at, err := filepath.Abs(path); err == nil && path != "-" && !slices.Contains(files, at) {
			files = append(files, at)
		}
	}
	add(p.file.Path)
	add(lock.Beside(p.file.Path))
	for _, path := range slices.Concat(p.workspace.options.VarFiles, p.file.Reads) {
		add(path)
	}
	named := func(s *pipeline.Stage) {
		for _, path := range pathsIn(s.Info.Arguments, s.Config.Public) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // not a store's folder, which changes
				add(path)
			}
		}
	}
	for _, s := range p.chosen.Stages {
		named(s)
		for _, f := range s.Fallbacks {
			named(f.Stage)
		}
	}
	for _, k := range p.chosen.Knowledge() {
		for _, s := range k.Stages() {
			named(s)
		}
		for _, from := range k.Sources {
			if from.Documents != nil {
				folders = append(folders, *from.Documents)
			} else if from.Path != "-" {
				rows = append(rows, from.Path)
			}
		}
	}
	return files, rows, folders
}
