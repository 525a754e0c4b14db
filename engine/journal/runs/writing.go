package runs

import (
	"slices"

	"github.com/racflow/racflow/engine/journal/manifest"
)

// Writing returns the newest run that ended early and was to write a file, which is given by
// its absolute path; false: there is none.
func (r Runs) Writing(file string) (manifest.Manifest, bool) {
	ids, _ := r.list()
	for _, id := range slices.Backward(ids) {
		if end := r.End(id); end != nil && end.Complete {
			continue
		}
		if m, err := r.Manifest(id); err == nil && m.Output == file {
			return m, true
		}
	}
	return manifest.Manifest{}, false
}
