package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"github.com/x448/float16"

	"github.com/racflow/racflow/sdk/support"
)

// file is one mapped file of weights.
type file struct {
	name string // for errors
	size int64
	disk *os.File // open until Close
	all  []byte   // the whole file, mapped as long as file is reachable
	data []byte   // the data of all tensors
	entries
}

type entries = map[string]entry

// maxSize bounds a file, all of which is read for its hash: four thousand million numbers.
const maxSize = 16 << 30

// openFile maps the file and reads its header.
func openFile(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe would block
		return nil, fmt.Errorf("%s is not a file", path)
	}
	disk, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := readFile(disk)
	if err != nil {
		disk.Close()
		return nil, err
	}
	return f, nil
}

func readFile(disk *os.File) (*file, error) {
	info, err := disk.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	if info.Size() > maxSize {
		return nil, fmt.Errorf("%s: %d GB: not the weights of an encoder", disk.Name(), info.Size()>>30)
	}
	all, unmap, err := support.Map(disk)
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	f := &file{name: disk.Name(), size: info.Size(), disk: disk, all: all}
	runtime.AddCleanup(f, func(unmap func()) { unmap() }, unmap)
	f.entries, f.data, err = readHeader(all, f.name)
	return f, err
}

// raw returns the bytes of a tensor, and checks its shape.
func (f *file) raw(tensor string, shape []int) ([]byte, entry, error) {
	e := f.entries[tensor]
	if _, ok := decoders[e.Dtype]; !ok {
		return nil, e, fmt.Errorf("%s: tensor %q: type %s is not supported: convert it to F32, F16 or BF16", f.name, tensor, e.Dtype)
	}
	if !fits(e.Shape, shape) {
		return nil, e, fmt.Errorf("%s: tensor %q: shape %v, expected %v", f.name, tensor, e.Shape, shapeText(shape))
	}
	return f.data[e.Offsets[0]:e.Offsets[1]], e, nil
}

// fits reports whether a tensor has the wanted shape.
func fits(shape, want []int) bool {
	if len(shape) != len(want) {
		return false
	}
	for i, n := range shape {
		if n != want[i] && want[i] != AnyRows {
			return false
		}
	}
	return true
}

// shapeText formats a wanted shape for people.
func shapeText(shape []int) []any {
	text := make([]any, len(shape))
	for i, n := range shape {
		if text[i] = n; n == AnyRows {
			text[i] = "any"
		}
	}
	return text
}

// sum writes the whole file to w.
func (f *file) sum(ctx context.Context, w io.Writer) error {
	r := io.NewSectionReader(f.disk, 0, f.size)
	for ctx.Err() == nil {
		_, err := io.CopyN(w, r, 4<<20)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the weights: %w", err)
		}
	}
	return ctx.Err()
}

const (
	// maxHeader bounds the header of a file. Headers of encoders have some 50 kB.
	maxHeader = 8 << 20
	// maxTensors bounds the number of tensors in a header, and so the memory for them.
	maxTensors = 1 << 15
	// maxDims bounds the dimensions of a tensor, and maxName the bytes of its name.
	maxDims = 8
	maxName = 512
	// maxSpare bounds the bytes of a file that belong to no tensor. They are read only for the hash.
	maxSpare = 1 << 20
)

// entry is a header's description of a tensor.
type entry struct {
	Dtype   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// readHeader reads the header of a file with the given contents: its length as 8 bytes in little-endian order, then
// JSON. It returns the entries of the tensors, checked against the data, and the data.
func readHeader(file []byte, name string) (map[string]entry, []byte, error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("%s: too short for a safetensors file (%d bytes): fetch it again", name, len(file))
	}
	length, rest := binary.LittleEndian.Uint64(file), file[8:]
	if length > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%s: header of %d bytes in a file of %d: not a safetensors file, or cut off", name, length, len(file))
	}
	if length > maxHeader {
		return nil, nil, fmt.Errorf("%s: header of %d bytes, at most %d are read: not the weights of an encoder", name, length, maxHeader)
	}
	data := rest[length:]
	entries, err := readEntries(rest[:length])
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for tensor, e := range entries {
		if err := e.check(int64(len(data))); err != nil {
			return nil, nil, fmt.Errorf("%s: tensor %q: %w", name, tensor, err)
		}
	}
	if err := checkApart(entries, int64(len(data))); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return entries, data, nil
}

// readEntries reads the JSON object of a header entry by entry, so that at most maxTensors are in memory.
func readEntries(header []byte) (map[string]entry, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, fmt.Errorf("header is not valid JSON: it does not begin with an object")
	}
	entries := map[string]entry{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("header is not valid JSON: %w", err)
		}
		tensor := key.(string) // keys of objects are strings; anything else was an error before
		if len(tensor) > maxName {
			return nil, fmt.Errorf("a tensor's name has %d bytes, at most %d are read", len(tensor), maxName)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("header is not valid JSON: tensor %q: %w", tensor, err)
		}
		if tensor == "__metadata__" {
			continue
		}
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("tensor %q: header entry: %.200v", tensor, err)
		}
		if _, twice := entries[tensor]; twice {
			return nil, fmt.Errorf("tensor %q is there twice", tensor)
		}
		if len(entries) == maxTensors {
			return nil, fmt.Errorf("more than %d tensors: not the weights of an encoder", maxTensors)
		}
		entries[tensor] = e
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("header is not valid JSON: %w", err)
	}
	return entries, nil
}

// check compares an entry with the number of data bytes in the file.
func (e entry) check(size int64) error {
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || begin > end || end > size {
		return fmt.Errorf("data from byte %d to %d, but the file holds %d: damaged or cut off", begin, end, size)
	}
	decode, ok := decoders[e.Dtype]
	if !ok {
		return nil // an unsupported type, which nobody can read
	}
	if len(e.Shape) > maxDims {
		return fmt.Errorf("impossible shape of %d dimensions", len(e.Shape))
	}
	bytes := int64(decode.size)
	for _, n := range e.Shape {
		if n < 0 || n > 0 && bytes > math.MaxInt64/int64(n) {
			return fmt.Errorf("impossible shape %v", e.Shape)
		}
		bytes *= int64(n)
	}
	if bytes != end-begin {
		return fmt.Errorf("shape %v of %s needs %d bytes, the file gives it %d", e.Shape, e.Dtype, bytes, end-begin)
	}
	return nil
}

// checkApart returns an error if two tensors share bytes, or if too many bytes of the data belong to no tensor.
func checkApart(entries map[string]entry, size int64) error {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(a, b))
	})
	for i := 1; i < len(names); i++ {
		a, b := entries[names[i-1]].Offsets, entries[names[i]].Offsets
		if b[0] < a[1] {
			return fmt.Errorf("tensors %q (bytes %d to %d) and %q (%d to %d) overlap: damaged", names[i-1], a[0], a[1], names[i], b[0], b[1])
		}
	}
	for _, e := range entries {
		size -= e.Offsets[1] - e.Offsets[0]
	}
	if size > maxSpare {
		return fmt.Errorf("%d bytes belong to no tensor: damaged, fetch it again", size)
	}
	return nil
}

// littleEndian reports whether floats in memory have the byte order of the file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// decoders lists the types that convert to float32 without loss.
var decoders = map[string]struct {
	size  int
	ones  uint32 // in the upper 16 bits: the exponent of numbers that are not finite
	widen func(dst []float32, raw []byte)
}{
	"F32": {4, 0x7f80, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}},
	"F16": {2, 0x7c00, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = float16.Frombits(binary.LittleEndian.Uint16(raw[2*i:])).Float32()
		}
	}},
	"BF16": {2, 0x7f80, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}},
}

// asFloats returns the numbers of a tensor without copying. ok is false if their form in the file differs from their
// form in memory.
func asFloats(dtype string, raw []byte) (values []float32, ok bool) {
	if dtype != "F32" || len(raw) == 0 || !littleEndian || uintptr(unsafe.Pointer(&raw[0]))%4 != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), len(raw)/4), true
}

// notFinite returns the index of the first number of a tensor that is infinite or NaN, or -1. Only such numbers have
// an exponent of ones.
func notFinite(dtype string, raw []byte) int {
	size, ones := decoders[dtype].size, decoders[dtype].ones
	for i := 0; i < len(raw); i += size {
		number := uint32(binary.LittleEndian.Uint16(raw[i+size-2:])) // the part with the exponent
		if number&ones == ones {
			return i / size
		}
	}
	return -1
}
