package minilm

import (
	"os"
	"runtime"
)

// mapping is a file in memory, read-only. On Unix the memory is the page cache's,
// so that the processes that read a model share it, and only what is in use
// takes room; elsewhere it is a copy. The file must not be changed in place, only
// replaced.
type mapping struct {
	data   []byte
	mapped bool // false: a copy
}

// openMapping maps size bytes of a file, or reads them where that cannot be. The
// memory goes when there is no reference to the mapping left, so who reads data
// must keep one.
func openMapping(f *os.File, size int64) (*mapping, error) {
	if data, ok := mapFile(f, size); ok {
		m := &mapping{data: data, mapped: true}
		runtime.AddCleanup(m, unmapFile, data)
		return m, nil
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && size > 0 {
		return nil, err
	}
	return &mapping{data: data}, nil
}

// forget drops the pages that were read so far from this process's memory. What
// is read again comes back from the page cache.
func (m *mapping) forget() {
	if m.mapped {
		forgetPages(m.data)
	}
}
