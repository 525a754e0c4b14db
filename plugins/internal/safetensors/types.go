package safetensors

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// littleEndian reports whether floats in memory have the byte order of the file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// decoders holds the types that convert to float32 without loss.
var decoders = map[string]struct {
	size  int
	widen func(dst []float32, raw []byte)
}{
	"F32": {4, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}},
	"F16": {2, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = FromHalf(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}},
	"BF16": {2, func(dst []float32, raw []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}},
}

// asFloats returns the numbers of a tensor where they lie. ok is false where they have another
// form there than in memory.
func asFloats(dtype string, raw []byte) (values []float32, ok bool) {
	if dtype != "F32" || len(raw) == 0 || !littleEndian || uintptr(unsafe.Pointer(&raw[0]))%4 != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), len(raw)/4), true
}

// FromHalf converts an IEEE 754 half-precision number, given by its bits.
func FromHalf(h uint16) float32 {
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

// notFinite returns the index of the first number of a tensor that is infinite or none, or -1.
// These have an exponent of ones alone, to which one bit more makes a carry.
func notFinite(dtype string, raw []byte) int {
	size := decoders[dtype].size
	// Of the numbers in 8 bytes: the exponents, their lowest bits, and the signs.
	exponent, low, sign := uint64(0x7f8000007f800000), uint64(0x0080000000800000), uint64(0x8000000080000000)
	switch dtype {
	case "BF16":
		exponent, low, sign = 0x7f807f807f807f80, 0x0080008000800080, 0x8000800080008000
	case "F16":
		exponent, low, sign = 0x7c007c007c007c00, 0x0400040004000400, 0x8000800080008000
	}
	for start := 0; start < len(raw); {
		end := min(start+1024, len(raw))
		// The test of a block has no branch in it: most hold finite numbers alone.
		var carries uint64
		at := start
		for ; at+8 <= end; at += 8 {
			carries |= binary.LittleEndian.Uint64(raw[at:])&exponent + low
		}
		if carries&sign != 0 || at < end {
			for at = start; at < end; at += size {
				var last [8]byte
				copy(last[:], raw[at:at+size])
				if n := binary.LittleEndian.Uint64(last[:]); (n&exponent+low)&sign&(1<<(8*size)-1) != 0 {
					return at / size
				}
			}
		}
		start = end
	}
	return -1
}
