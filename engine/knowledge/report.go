package knowledge

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// Report says what Open found and did.
type Report struct {
	Name                    string
	Documents               int // that the entries are made of; 0: they are rows
	Entries                 int
	Added, Changed, Removed int
	Anew                    []string // which plugins are others than before, so that all is made again
	Unchanged               bool     // the source is as it was: no row was looked at
	Invalid                 []InvalidRow
	InvalidCount            int // Invalid keeps the first maxFaults only
	Unenriched              int // passages that are kept without an addition that they should have
	FirstUnenriched         InvalidRow
	Asks                    []Asks // of a plan: what services would be asked, at most
	Embedder, Store         string
	Retired                 []Generation // removed: this build replaces them
	Kept                    []error      // why others that it replaces could not be removed
}

// InvalidRow is a row or document of the source that cannot be used.
type InvalidRow struct {
	Path string
	Line int // 0: a document as a whole
	Err  error
}

const maxFaults = 1000

func (f InvalidRow) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %v", f.Path, f.Err)
	}
	return fmt.Sprintf("%s:%d: %v", f.Path, f.Line, f.Err)
}

// SourceError says that a source block names something that cannot be read.
type SourceError struct {
	Range hcl.Range // of the source block
	Err   error
}

func (e *SourceError) Error() string { return e.Err.Error() }

func (e *SourceError) Unwrap() error { return e.Err }
