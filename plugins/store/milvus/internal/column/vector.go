package column

import (
	"encoding/binary"
	"math"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"
)

// vectorColumn reads vectors of floats; nil: it has others.
func vectorColumn(c *column, v *schemapb.VectorField) *column {
	dim := int(v.GetDim())
	if dim == 0 {
		return nil
	}
	halves := func(data []byte, decode func(uint16) float32) *column {
		c.n = len(data) / (2 * dim)
		c.at = func(i int) any {
			x := make([]float32, dim)
			for j := range x {
				x[j] = decode(binary.LittleEndian.Uint16(data[2*(i*dim+j):]))
			}
			return x
		}
		return c
	}
	switch data := v.GetData().(type) {
	case *schemapb.VectorField_FloatVector:
		values := data.FloatVector.GetData()
		c.n, c.at = len(values)/dim, func(i int) any { return values[i*dim : (i+1)*dim : (i+1)*dim] }
		return c
	case *schemapb.VectorField_Float16Vector:
		return halves(data.Float16Vector, fromFloat16)
	case *schemapb.VectorField_Bfloat16Vector:
		return halves(data.Bfloat16Vector, fromBFloat16)
	}
	return nil
}

func fromBFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// fromFloat16 reads the binary16 of IEEE 754.
func fromFloat16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0: // subnormal, or 0
		x := math.Float32bits(float32(fraction) * (1.0 / (1 << 24)))
		return math.Float32frombits(sign | x)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// toFloat16 rounds to the nearest number, ties to even ones. It is for parts of
// vectors: what is too large becomes infinite.
func toFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, exponent := uint16(b>>16)&0x8000, int(b>>23&0xff)-112
	switch {
	case exponent >= 31:
		return sign | 0x7c00
	case exponent <= 0:
		// Subnormal: the multiple of 2 to the power of -24.
		return sign | uint16(math.RoundToEven(math.Abs(float64(x))*(1<<24)))
	}
	half := uint32(exponent)<<10 | b&0x7fffff>>13
	if rest := b & 0x1fff; rest > 0x1000 || rest == 0x1000 && half&1 == 1 {
		half++ // may carry into the exponent, which is right
	}
	return sign | uint16(half)
}

func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Placeholders writes vectors as a search of a field of this type takes them.
func Placeholders(typ schemapb.DataType, vectors [][]float32) *commonpb.PlaceholderValue {
	v := &commonpb.PlaceholderValue{Tag: "$0", Type: commonpb.PlaceholderType(typ)}
	for _, x := range vectors {
		var b []byte
		for _, part := range x {
			switch typ {
			case schemapb.DataType_Float16Vector:
				b = binary.LittleEndian.AppendUint16(b, toFloat16(part))
			case schemapb.DataType_BFloat16Vector:
				b = binary.LittleEndian.AppendUint16(b, toBFloat16(part))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(part))
			}
		}
		v.Values = append(v.Values, b)
	}
	return v
}

// Cosine of two vectors; 0 where one has no direction.
func Cosine(a, b []float32) float32 {
	var product, squareA, squareB float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		product, squareA, squareB = product+x*y, squareA+x*x, squareB+y*y
	}
	if squareA == 0 || squareB == 0 {
		return 0
	}
	return Clip(product / math.Sqrt(squareA*squareB))
}

// Norm is the length of a vector.
func Norm(x []float32) float64 {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	return math.Sqrt(square)
}

// Clip makes a score a cosine; NaN, which some servers give for a vector without
// direction, is 0.
func Clip(x float64) float32 {
	if math.IsNaN(x) {
		return 0
	}
	return float32(max(-1, min(1, x)))
}
