package milvus

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
)

// details are what is kept of a row for this package alone: in one string,
// because every field costs a server time.
type details struct {
	hash    []byte
	average float64 // average length that the words were weighed with
	counts  *counts // nil: no lexical side, or too many for a string
}

var errDetails = errors.New("the details of a row are damaged: build the collection anew under another prefix")

// encode writes details in base64: the length of the hash and the hash, the
// average, the length of the text, and for each word the distance to the number
// before and how often it occurs.
func (d details) encode() string {
	b := binary.AppendUvarint(nil, uint64(len(d.hash)))
	b = append(b, d.hash...)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(d.average))
	whole := b
	if d.counts != nil {
		whole = binary.AppendUvarint(whole, uint64(d.counts.length))
		previous := uint32(0)
		for _, w := range d.counts.words {
			whole = binary.AppendUvarint(binary.AppendUvarint(whole, uint64(w.word-previous)), uint64(w.times))
			previous = w.word
		}
	}
	if base64.RawStdEncoding.EncodedLen(len(whole)) > maxBytes {
		whole = b
	}
	return base64.RawStdEncoding.EncodeToString(whole)
}

func decodeDetails(text string) (details, error) {
	var d details
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return d, errDetails
	}
	next := func() uint64 {
		n, read := binary.Uvarint(b)
		if read <= 0 {
			err, b = errDetails, nil
			return 0
		}
		b = b[read:]
		return n
	}
	n := next()
	if n > uint64(len(b)) || len(b)-int(n) < 8 {
		return d, errDetails
	}
	if n > 0 {
		d.hash = b[:n:n]
	}
	d.average = math.Float64frombits(binary.LittleEndian.Uint64(b[n:]))
	if b = b[n+8:]; len(b) == 0 {
		return d, nil
	}
	c := &counts{length: int(next())}
	c.words = make([]count, 0, len(b)/5+1)
	for word := uint64(0); len(b) > 0; {
		word += next()
		c.words = append(c.words, count{uint32(word), uint32(next())})
	}
	d.counts = c
	return d, err
}
