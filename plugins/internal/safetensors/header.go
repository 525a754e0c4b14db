package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

const (
	// maxHeader bounds the header of a file. Those of encoders have some 50 kB.
	maxHeader = 8 << 20
	// maxTensors bounds how many tensors a header lists, and so the memory for them.
	maxTensors = 1 << 15
	// maxDims bounds the dimensions of a tensor, and maxName the bytes of its name.
	maxDims = 8
	maxName = 512
	// maxSpare bounds the bytes of a file that belong to no tensor, and are read for the sum
	// alone.
	maxSpare = 1 << 20
)

// entry is what a header says of a tensor.
type entry struct {
	Dtype   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// readHeader reads the header of a file with the given contents: its length, 8 bytes
// little endian, then JSON. It returns what the header says of each tensor, checked
// against the data that follow, and these.
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

// readEntries reads the JSON object of a header, entry by entry, so that no more than
// maxTensors are kept.
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
		tensor := key.(string) // a key of an object is one, and others are errors
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
		return nil // nobody can read it
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

// checkApart is an error where two tensors share bytes, and where many bytes of the data are
// no tensor's.
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
