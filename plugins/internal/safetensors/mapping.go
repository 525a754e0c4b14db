package safetensors

import (
	"os"
	"runtime"
)

// mapping is a file in memory, read-only. On Unix the memory is that of the page cache,
// which processes share, and only pages in use take space; elsewhere it is a copy. The
// file must not be changed in place, only replaced.
type mapping struct {
	data   []byte
	mapped bool // false: a copy
}

// openMapping maps size bytes of a file, or reads them where mapping fails. The memory is
// released with the last reference to the mapping, so readers of data need one.
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

// forget drops the pages of a part of data from this process's memory; the page cache has
// them when they are read again.
func (m *mapping) forget(part []byte) {
	if !m.mapped || len(part) == 0 {
		return
	}
	begin := cap(m.data) - cap(part)
	begin -= begin % os.Getpagesize()
	forgetPages(m.data[begin : cap(m.data)-cap(part)+len(part)])
}
