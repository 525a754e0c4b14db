package source

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Shares reports whether two parts of the same rows have any in common.
func (f Form) Shares(other Form) bool {
	if f.Where[0] == other.Where[0] && f.Where[1] != other.Where[1] || f.Sheet != "" && other.Sheet != "" && f.Sheet != other.Sheet {
		return false
	}
	whole := func(part [2]float64) [2]float64 {
		if part == [2]float64{} {
			part[1] = 1
		}
		return part
	}
	a, b := whole(f.Part), whole(other.Part)
	return max(a[0], b[0]) < min(a[1], b[1])
}

// in reports whether the row of a text belongs to a part. Texts that differ
// in case and white space alone fall into the same part.
func in(part [2]float64, text string) bool {
	from, to := part[0], part[1]
	sum := sha256.Sum256([]byte(strings.ToLower(spaced(text))))
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) // below 1, exactly
	return from <= at && at < to
}
