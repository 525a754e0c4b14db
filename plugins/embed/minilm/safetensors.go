package minilm

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// maxHeader bounds the header of a weights file, as the reference reader does.
const maxHeader = 100 << 20

// tensors reads a file in the safetensors format
// (github.com/huggingface/safetensors): the length of a JSON header, 8 bytes
// little endian, the header, and the data of all tensors.
type tensors struct {
	name    string // the file's name, for errors
	data    []byte
	entries map[string]tensorEntry
}

type tensorEntry struct {
	Dtype   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// openTensors reads the header of a weights file and checks every tensor in it
// against the size of the file.
func openTensors(file []byte, name string) (*tensors, error) {
	if len(file) < 8 {
		return nil, fmt.Errorf("%s: too short for a safetensors file (%d bytes): fetch it again", name, len(file))
	}
	length, rest := binary.LittleEndian.Uint64(file), file[8:]
	if length > maxHeader || length > uint64(len(rest)) {
		return nil, fmt.Errorf("%s: header of %d bytes in a file of %d: not a safetensors file, or cut off", name, length, len(file))
	}
	header, data := rest[:length], rest[length:]
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(header, &raw); err != nil {
		return nil, fmt.Errorf("%s: header is not valid JSON: %w", name, err)
	}
	t := &tensors{name: name, data: data, entries: make(map[string]tensorEntry, len(raw))}
	delete(raw, "__metadata__")
	for tensor, text := range raw {
		var e tensorEntry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: header entry: %w", name, tensor, err)
		}
		if err := e.check(int64(len(data))); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", name, tensor, err)
		}
		t.entries[tensor] = e
	}
	return t, nil
}

// check compares an entry with the number of data bytes in the file.
func (e tensorEntry) check(size int64) error {
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || begin > end || end > size {
		return fmt.Errorf("data from byte %d to %d, but the file holds %d: damaged or cut off", begin, end, size)
	}
	decode, ok := decoders[e.Dtype]
	if !ok {
		return nil // the encoder does not read it
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

// has reports whether the file holds the tensor.
func (t *tensors) has(tensor string) bool {
	_, ok := t.entries[tensor]
	return ok
}

// anyRows stands for a first dimension of any size in a shape.
const anyRows = -1

// read returns a tensor as float32, row by row, possibly in the file's own memory, so
// that it must not be changed. Another shape than the given one is an error.
func (t *tensors) read(tensor string, shape ...int) ([]float32, error) {
	e, ok := t.entries[tensor]
	if !ok {
		return nil, fmt.Errorf("%s: tensor %q is missing", t.name, tensor)
	}
	decode, ok := decoders[e.Dtype]
	if !ok {
		return nil, fmt.Errorf("%s: tensor %q: type %s is not supported: convert it to F32, F16 or BF16", t.name, tensor, e.Dtype)
	}
	if len(e.Shape) > 0 && len(shape) > 0 && shape[0] == anyRows {
		shape = append([]int{e.Shape[0]}, shape[1:]...)
	}
	if !slices.Equal(e.Shape, shape) {
		return nil, fmt.Errorf("%s: tensor %q: shape %v, expected %v", t.name, tensor, e.Shape, shape)
	}
	raw := t.data[e.Offsets[0]:e.Offsets[1]]
	if e.Dtype == "F32" && len(raw) > 0 && littleEndian && uintptr(unsafe.Pointer(&raw[0]))%4 == 0 {
		return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), len(raw)/4), nil
	}
	values := make([]float32, len(raw)/decode.size)
	for i := range values {
		values[i] = decode.value(raw[i*decode.size:])
	}
	return values, nil
}

// littleEndian reports whether floats in memory have the byte order of the file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// decoders holds the types that convert to float32 without loss.
var decoders = map[string]struct {
	size  int
	value func([]byte) float32
}{
	"F32": {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"F16": {2, func(b []byte) float32 { return fromHalf(binary.LittleEndian.Uint16(b)) }},
	"BF16": {2, func(b []byte) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}},
}

// fromHalf converts an IEEE 754 half-precision number.
func fromHalf(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // zero, or a fraction without the leading one
		v := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f: // infinity or not a number
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
