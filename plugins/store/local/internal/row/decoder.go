package row

import "encoding/binary"

// Decoder takes values off the front of b. After a value that b was too short
// for it returns zero values only.
type Decoder struct {
	B     []byte
	Short bool
}

// Take returns the next n bytes.
func (d *Decoder) Take(n int) []byte {
	if n < 0 || n > len(d.B) {
		d.B, d.Short = nil, true
		return nil
	}
	v := d.B[:n:n]
	d.B = d.B[n:]
	return v
}

// Uint32 returns the next number.
func (d *Decoder) Uint32() uint32 {
	if v := d.Take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

// Uint64 returns the next number.
func (d *Decoder) Uint64() uint64 {
	if v := d.Take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}
