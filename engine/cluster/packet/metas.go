package packet

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// meta is the number of metadata, from 1; 0: there is none.
func (w *writer) meta(m sdk.Meta) int {
	if m == nil {
		return 0
	}
	at := reflect.ValueOf(m).Pointer()
	if n, ok := w.byMap[at]; ok { // stages share the metadata of an entry
		return n
	}
	all := make([]int, 0, 3*len(m))
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		one := w.value(name, m[name])
		all = append(all, one[:]...)
		for _, n := range one {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	n, ok := w.byText[string(key)]
	if !ok {
		w.metas = append(w.metas, all)
		n = len(w.metas)
		w.byText[string(key)] = n
	}
	w.byMap[at] = n
	return n
}

// madeMeta is metadata that was read, which all that have it share.
type madeMeta struct {
	sdk.Meta
	is bool
}

func (r *reader) meta(n int) sdk.Meta {
	if n == 0 {
		return nil
	}
	if n < 0 || n > len(r.metas) {
		r.fail("there is no metadata %d", n)
		return nil
	}
	if r.made == nil {
		r.made = make([]madeMeta, len(r.metas))
	}
	if made := &r.made[n-1]; !made.is && r.tuples("metadata", r.metas[n-1], 3) {
		made.Meta, made.is = sdk.Meta{}, true
		for one := range slices.Chunk(r.metas[n-1], 3) {
			name, value := r.value(one)
			made.Meta[name] = value
		}
	}
	return r.made[n-1].Meta
}
