package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeVectors makes rows of vectors of the given dimension. A nil vector
// travels as zeros.
func EncodeVectors(vectors [][]float32, dimension int) (*stagepb.Rows, error) {
	rows := &stagepb.Rows{N: uint32(len(vectors))}
	err := packVectors(rows, dimension, func(i int) []float32 { return vectors[i] })
	return rows, err
}

// DecodeVectors returns the n vectors of the given dimension in rows.
func DecodeVectors(rows *stagepb.Rows, n, dimension int) ([][]float32, error) {
	if err := whole("vectors", int(rows.GetN()), n); err != nil {
		return nil, err
	}
	vectors, err := unpackVectors(rows)
	if err != nil {
		return nil, err
	}
	if n > 0 && (dimension == 0 || int(rows.GetDimension()) != dimension) {
		return nil, fmt.Errorf("vectors have dimension %d, not %d", rows.GetDimension(), dimension)
	}
	return vectors, nil
}

// widest is the dimension of the first vector that there is.
func widest(n int, vector func(int) []float32) int {
	for i := range n {
		if v := vector(i); v != nil {
			return len(v)
		}
	}
	return 0
}

func packVectors(rows *stagepb.Rows, dimension int, vector func(int) []float32) error {
	n := int(rows.N)
	if n == 0 || dimension == 0 {
		return nil
	}
	packed := make([]byte, 4*n*dimension)
	for i := range n {
		v := vector(i)
		if v == nil {
			continue
		}
		if len(v) != dimension {
			return fmt.Errorf("row %d: vector of dimension %d, not %d", i, len(v), dimension)
		}
		row := packed[4*i*dimension:][:4*dimension]
		for j, x := range v {
			binary.LittleEndian.PutUint32(row[4*j:], math.Float32bits(x))
		}
	}
	rows.Dimension, rows.Vectors = uint32(dimension), packed
	return nil
}

// unpackVectors returns a vector per row, or nil where rows has no vectors.
func unpackVectors(rows *stagepb.Rows) ([][]float32, error) {
	n, dimension, packed := int(rows.GetN()), int(rows.GetDimension()), rows.GetVectors()
	if dimension == 0 && len(packed) == 0 {
		return nil, nil
	}
	if len(packed) == 0 || n == 0 || len(packed)%n != 0 || len(packed)/n != 4*dimension {
		return nil, fmt.Errorf("column vectors has %d bytes for %d rows of dimension %d", len(packed), n, dimension)
	}
	flat := make([]float32, n*dimension)
	for i := range flat {
		flat[i] = math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	vectors := make([][]float32, n)
	for i := range vectors {
		vectors[i] = flat[i*dimension : (i+1)*dimension : (i+1)*dimension]
	}
	return vectors, nil
}
