package milvus

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
)

// details are what a search wants to know of a row, and what is kept for this
// package alone: in one string, because every field costs a server time, when it
// is written and when it is read.
type details struct {
	hash    []byte
	average float64 // average length that the words were weighed with
	// The rest is left out where it would be too long for a string.
	whole     bool
	id, label string
	counts    packed
}

var errDetails = errors.New("the details of a row are damaged: build the collection anew under another prefix")

// encode writes details in base64: a byte that says whether they are whole, the
// hash, the average, the id, the label, the length of the text, its words and how
// often they occur. Strings have their length in front.
func (d details) encode() string {
	b := appendString(make([]byte, 1, 256), d.hash)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(d.average))
	short := len(b)
	b[0] = 1
	b = appendString(appendString(b, d.id), d.label)
	b = binary.AppendUvarint(b, uint64(d.counts.length))
	b = append(appendString(b, d.counts.words), d.counts.times...)
	if base64.RawStdEncoding.EncodedLen(len(b)) > maxBytes {
		b[0], b = 0, b[:short]
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeDetails returns details that share memory.
func decodeDetails(text string) (details, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 {
		return details{}, errDetails
	}
	r := detailsReader{b: b[1:]}
	d := details{whole: b[0] == 1, hash: r.bytes()}
	if average := r.take(8); !r.short {
		d.average = math.Float64frombits(binary.LittleEndian.Uint64(average))
	}
	if d.whole {
		d.id, d.label = string(r.bytes()), string(r.bytes())
		d.counts = packed{length: int(r.uvarint()), words: r.bytes(), times: r.b}
	}
	if r.short || len(d.counts.words)%4 != 0 || !d.whole && len(r.b) > 0 || !uvarints(d.counts.times, len(d.counts.words)/4) {
		return details{}, errDetails
	}
	return d, nil
}

// uvarints reports whether b consists of n numbers.
func uvarints(b []byte, n int) bool {
	for _, c := range b {
		if c < 0x80 {
			n--
		}
	}
	return n == 0 && (len(b) == 0 || b[len(b)-1] < 0x80)
}

type detailsReader struct {
	b     []byte
	short bool
}

func (r *detailsReader) uvarint() uint64 {
	n, read := binary.Uvarint(r.b)
	if read <= 0 {
		r.b, r.short = nil, true
		return 0
	}
	r.b = r.b[read:]
	return n
}

func (r *detailsReader) bytes() []byte { return r.take(r.uvarint()) }

func (r *detailsReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.short = nil, true
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}
