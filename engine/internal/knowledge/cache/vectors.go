package cache

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
)

// VectorOptions says where vectors are stored, and how many.
type VectorOptions struct {
	Root   string // folder with a subfolder for each embedder; empty: nothing is stored
	Limits        // of all embedders together; without Bytes nothing is stored
	Log    *slog.Logger
	Warned *atomic.Bool // set once an unusable folder was reported, for any knowledge; nil: not shared
}

// warn reports once that the folder is unusable: the reason is the same for all embedders.
func (o VectorOptions) warn(message string, err error) {
	if o.Warned == nil || o.Warned.CompareAndSwap(false, true) {
		o.Log.Warn(message, "folder", o.Root, "concerns", "every knowledge", "advice", "make the folder writable", "error", err)
	}
}

// A trim removes whole files, so a full cache has about 32 files.
const (
	filesOfVectors = 32
	leastSegment   = 64 << 10
)

// Vectors stores the vectors of one embedder by their texts. It never blocks a build: an unreadable
// vector counts as missing, and a failed write is reported once. A nil Vectors stores nothing. Its
// methods are for one goroutine.
type Vectors struct {
	options   VectorOptions
	cache     *Cache
	about     string
	dimension int
	room      int64 // bytes that may still be written; 0 after a failed write
}

// OpenVectors opens the vectors of an embedder. identity is a digest of everything, except the
// text, that the vectors depend on. about is the embedder's name. OpenVectors returns nil if
// vectors are not stored.
func OpenVectors(o VectorOptions, identity, about string, dimension int) *Vectors {
	if o.Root == "" || o.Bytes <= 0 {
		return nil
	}
	if o.Warned == nil {
		o.Warned = new(atomic.Bool)
	}
	v := &Vectors{options: o, about: about, dimension: dimension, room: o.Bytes}
	v.trim() // for builds that ended before their own trim
	key := sdk.KeyOf(identity, fmt.Sprint(dimension))
	var err error
	if v.cache, err = vectors.open(filepath.Join(o.Root, fmt.Sprintf("%x", key[:8])), o.Log); err != nil {
		o.warn("vectors are made again: those of earlier builds cannot be opened", err)
		return nil
	}
	v.cache.segment = max(leastSegment, o.Bytes/filesOfVectors)
	return v
}

// Get returns the vectors of texts; nil for a text without one.
func (v *Vectors) Get(texts []string) [][]float32 {
	found := make([][]float32, len(texts))
	if v == nil {
		return found
	}
	for i, text := range texts {
		value, ok := v.cache.Get(sdk.KeyOf(text))
		if !ok || len(value) != 4*v.dimension {
			continue
		}
		found[i] = make([]float32, v.dimension)
		for j := range found[i] {
			found[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(value[4*j:]))
		}
	}
	return found
}

// Put stores the vectors of texts, except nil vectors. One build stores at most the limit's bytes
// in total.
func (v *Vectors) Put(texts []string, vectors [][]float32) {
	if v == nil {
		return
	}
	var keys []sdk.Key
	var values [][]byte
	for i, vector := range vectors {
		if len(vector) != v.dimension || v.room < int64(4*v.dimension) {
			continue
		}
		value := make([]byte, 0, 4*v.dimension)
		for _, x := range vector {
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(x))
		}
		keys, values = append(keys, sdk.KeyOf(texts[i])), append(values, value)
		v.room -= int64(len(value))
	}
	if len(keys) == 0 {
		return
	}
	v.cache.writing.Lock()
	defer v.cache.writing.Unlock()
	if err := v.cache.write(v.about, keys, values); err != nil {
		v.room = 0
		v.options.warn("vectors are not kept for later builds; this one is not affected", err)
	}
}

// Close releases the files and removes what exceeds the limits.
func (v *Vectors) Close() {
	if v == nil {
		return
	}
	if err := v.cache.Close(); err != nil {
		v.options.warn("close the cache of vectors", err)
	}
	v.trim()
}

func (v *Vectors) trim() {
	if _, err := TrimVectors(v.options.Root, v.options.Limits); err != nil {
		v.options.warn("the cache of vectors may be larger than its limit", err)
	}
}

// embedders returns the folders of all embedders.
func embedders(root string) []string {
	var dirs []string
	entries, _ := os.ReadDir(root) // an unreadable root has no usable vectors
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
	}
	return dirs
}
