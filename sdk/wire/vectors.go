package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// EncodeVectors converts vectors of a dimension into rows. A nil vector becomes zeros.
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

// widest returns the dimension of the first vector that is not nil.
func widest(n int, vector func(int) []float32) int {
	for i := range n {
		if v := vector(i); v != nil {
			return len(v)
		}
	}
	return 0
}

// sparseShare is the least ratio of all numbers to non-zero numbers at which vectors are sent as
// sparse ones. These then take at most half of the bytes.
const sparseShare = 4

func packVectors(rows *stagepb.Rows, dimension int, vector func(int) []float32) error {
	n := int(rows.N)
	if n == 0 || dimension == 0 {
		return nil
	}
	terms, most := 0, n*dimension/sparseShare
	for i := range n {
		v := vector(i)
		if v != nil && len(v) != dimension {
			return fmt.Errorf("row %d: vector of dimension %d, not %d", i, len(v), dimension)
		}
		for j := 0; j < len(v) && terms <= most; j++ {
			if math.Float32bits(v[j]) != 0 {
				terms++
			}
		}
	}
	rows.Dimension = uint32(dimension)
	if terms <= most {
		rows.SparseVectors = packSparse(make([]byte, 0, 4*n+8*terms), n, vector)
		return nil
	}
	rows.Vectors = make([]byte, 4*n*dimension)
	for i := range n {
		row := rows.Vectors[4*i*dimension:]
		for j, x := range vector(i) {
			binary.LittleEndian.PutUint32(row[4*j:], math.Float32bits(x))
		}
	}
	return nil
}

func packSparse(b []byte, n int, vector func(int) []float32) []byte {
	for i := range n {
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		for j, x := range vector(i) {
			if bits := math.Float32bits(x); bits != 0 {
				b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(j)), bits)
			}
		}
		binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4)/8)
	}
	return b
}

// unpackVectors returns a vector per row, or nil if rows has no vectors.
func unpackVectors(rows *stagepb.Rows) ([][]float32, error) {
	n, dimension, packed := int(rows.GetN()), int(rows.GetDimension()), rows.GetVectors()
	sparse := len(rows.GetSparseVectors()) > 0
	switch {
	case dimension == 0 && len(packed) == 0 && !sparse:
		return nil, nil
	case sparse && len(packed) > 0:
		return nil, errors.New("vectors come both as vectors and as sparse_vectors")
	case sparse && (n == 0 || dimension == 0 || dimension > MaxMessage/4/n):
		return nil, fmt.Errorf("column sparse_vectors has %d rows of dimension %d, in all more than a message could hold", n, dimension)
	case !sparse && (len(packed) == 0 || n == 0 || len(packed)%n != 0 || len(packed)/n != 4*dimension):
		return nil, fmt.Errorf("column vectors has %d bytes for %d rows of dimension %d", len(packed), n, dimension)
	}
	flat := make([]float32, n*dimension)
	for i := range len(packed) / 4 {
		flat[i] = math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	vectors := make([][]float32, n)
	for i := range vectors {
		vectors[i] = flat[i*dimension : (i+1)*dimension : (i+1)*dimension]
	}
	if sparse {
		return vectors, unpackSparse(rows.GetSparseVectors(), vectors)
	}
	return vectors, nil
}

// unpackSparse sets the numbers of vectors that are all 0 so far.
func unpackSparse(b []byte, vectors [][]float32) error {
	for i, v := range vectors {
		if len(b) < 4 || uint64(len(b)-4) < 8*uint64(binary.LittleEndian.Uint32(b)) {
			return fmt.Errorf("column sparse_vectors ends within row %d of %d", i, len(vectors))
		}
		terms := b[4:][:8*binary.LittleEndian.Uint32(b)]
		b = b[4+len(terms):]
		for next := 0; len(terms) > 0; terms = terms[8:] {
			at := int(binary.LittleEndian.Uint32(terms))
			if at < next || at >= len(v) {
				return fmt.Errorf("column sparse_vectors, row %d: place %d is not from %d to %d", i, at, next, len(v)-1)
			}
			v[at], next = math.Float32frombits(binary.LittleEndian.Uint32(terms[4:])), at+1
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("column sparse_vectors has %d bytes more than its rows", len(b))
	}
	return nil
}

// Densify replaces sparse vectors by dense ones, for a receiver of an older version of the protocol.
func Densify(rows *stagepb.Rows) {
	if vectors, err := unpackVectors(rows); err == nil && len(rows.GetSparseVectors()) > 0 {
		rows.SparseVectors, rows.Vectors = nil, make([]byte, 0, 4*len(vectors)*int(rows.Dimension))
		for _, v := range vectors {
			for _, x := range v {
				rows.Vectors = binary.LittleEndian.AppendUint32(rows.Vectors, math.Float32bits(x))
			}
		}
	}
}
