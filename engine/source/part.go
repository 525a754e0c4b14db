package source

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// in reports whether the row of a text belongs to the part that counts. Texts that differ
// in case and white space alone fall into the same part.
func (f Form) in(text string) bool {
	from, to := f.Part[0], f.Part[1]
	if f.Part == [2]float64{} {
		return true
	}
	sum := sha256.Sum256([]byte(strings.ToLower(spaced(text))))
	at := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53) // below 1, exactly
	return from <= at && at < to
}
