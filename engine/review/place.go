package review

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
)

// DefaultFile is the name of the file that decisions go to where the pipeline's file names none. It is
// made beside that one.
const DefaultFile = "reviewed.jsonl"

// Place is where decisions about a knowledge go.
type Place struct {
	Knowledge string
	Path      string // of the file with decisions; absolute
	Add       string // lines that the knowledge's block lacks, so that it reads them; empty: none
}

// Find says where decisions go, of a pipeline that searches these knowledge blocks in this file: of the one
// that is called name or, where that is empty, of the only one that is made of rows or the only one that
// has a source with decisions. path takes the place of what the file says; empty: what it says.
func Find(file string, blocks []*pipeline.Knowledge, name, path string) (Place, error) {
	var rows, reviewed []*pipeline.Knowledge
	var names []string
	for _, k := range blocks {
		if len(k.Sources) == 0 || k.Documents() != nil || name != "" && k.Name != name {
			continue
		}
		rows = append(rows, k)
		names = append(names, fmt.Sprintf("%q", k.Name))
		if k.Reviewed() != "" {
			reviewed = append(reviewed, k)
		}
	}
	switch {
	case len(rows) == 0 && name != "":
		return Place{}, fmt.Errorf("%s searches no knowledge %q that is made of rows; a collection that somebody else makes is only read", file, name)
	case len(rows) == 0:
		return Place{}, fmt.Errorf("%s searches no knowledge that is made of rows, and decisions are rows; a collection that somebody else makes is only read", file)
	case len(rows) > 1 && len(reviewed) != 1:
		return Place{}, errors.New("several are made of rows: say with --knowledge which one learns from the decisions: " + strings.Join(names, ", "))
	case len(rows) > 1:
		rows = reviewed
	}
	k := rows[0]
	file, err := filepath.Abs(file)
	if err == nil && path != "" {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Place{}, err
	}
	p := Place{Knowledge: k.Name, Path: cmp.Or(path, k.Reviewed(), filepath.Join(filepath.Dir(file), DefaultFile))}
	if p.Path != k.Reviewed() {
		named := p.Path
		if rel, err := filepath.Rel(filepath.Dir(file), named); err == nil {
			named = filepath.ToSlash(rel)
		}
		p.Add = fmt.Sprintf("  source {\n    path     = %q\n    reviewed = true\n  }\n", named)
	}
	return p, nil
}
