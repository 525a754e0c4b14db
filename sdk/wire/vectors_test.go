package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/sdk/proto/stagepb"
)

// Vectors that are mostly 0 are sent as sparse ones if that is shorter. They arrive with the same
// bits, whether the receiver knows sparse vectors or not.
func TestSparseVectors(t *testing.T) {
	for share := 1; share < 12; share++ {
		vectors := make([][]float32, 5)
		for i := range vectors {
			vectors[i] = make([]float32, 96)
			for j := i; j < 96; j += share {
				vectors[i][j] = float32(j) - 48.5
			}
		}
		vectors[3], vectors[4][0] = make([]float32, 96), float32(math.Copysign(0, -1))
		rows, err := EncodeVectors(vectors, 96)
		if err != nil {
			t.Fatal(err)
		}
		dense := proto.CloneOf(rows)
		Densify(dense)
		if len(dense.Vectors) != 4*5*96 || dense.SparseVectors != nil {
			t.Fatalf("share %d: %d and %d bytes for one that knows no sparse vectors", share, len(dense.Vectors), len(dense.SparseVectors))
		}
		if size := len(rows.Vectors) + len(rows.SparseVectors); (rows.Vectors == nil) != (share >= 4) || size > len(dense.Vectors) {
			t.Errorf("share %d: %d bytes, %d of them sparse", share, size, len(rows.SparseVectors))
		}
		for _, r := range []*stagepb.Rows{rows, dense} {
			got, err := DecodeVectors(r, 5, 96)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if !slices.EqualFunc(got[i], vectors[i], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Errorf("share %d, row %d: %v, want %v", share, i, got[i], vectors[i])
				}
			}
		}
	}
}

func TestSparseVectorsThatMakeNoSense(t *testing.T) {
	numbers := func(all ...uint32) (b []byte) {
		for _, x := range all {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		return b
	}
	one := math.Float32bits(1)
	for want, rows := range map[string]*stagepb.Rows{
		"row 0 of 2":              {N: 2, Dimension: 8, SparseVectors: numbers(2, 0, one)},
		"row 1 of 2":              {N: 2, Dimension: 8, SparseVectors: numbers(1, 0, one)},
		"4 bytes more":            {N: 1, Dimension: 8, SparseVectors: numbers(0, 0)},
		"place 8 is not":          {N: 1, Dimension: 8, SparseVectors: numbers(1, 8, one)},
		"place 3 is not from 4":   {N: 1, Dimension: 8, SparseVectors: numbers(2, 3, one, 3, one)},
		"more than a message":     {N: 1 << 20, Dimension: 1 << 20, SparseVectors: numbers(0)},
		"both as vectors and":     {N: 1, Dimension: 1, SparseVectors: numbers(0), Vectors: numbers(one)},
		"column vectors has 0 by": {N: 1, Dimension: 1},
		"dimension 0, in all":     {N: 1, SparseVectors: numbers(0)},
	} {
		if _, err := unpackVectors(rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
