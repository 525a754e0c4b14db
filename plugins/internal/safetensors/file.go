package safetensors

import (
	"context"
	"fmt"
	"io"
	"os"
)

// file is one file of weights, mapped.
type file struct {
	name string // for errors
	size int64
	disk *os.File // until it is closed
	held *mapping // nil where the contents came as bytes
	data []byte   // of all tensors
	entries
}

type entries = map[string]entry

// maxSize bounds a file, all of which is read for its sum: four thousand million numbers.
const maxSize = 16 << 30

// openFile maps the file and reads its header.
func openFile(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
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
	held, err := openMapping(disk, info.Size())
	if err != nil {
		return nil, fmt.Errorf("read the weights: %w", err)
	}
	f := &file{name: disk.Name(), size: info.Size(), disk: disk, held: held}
	f.entries, f.data, err = readHeader(held.data, f.name)
	return f, err
}

// raw returns the bytes of a tensor, and checks that its shape is the given one.
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

// shapeText is a wanted shape for people.
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
