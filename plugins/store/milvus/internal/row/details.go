package row

import (
	"encoding/base64"
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/racflow/racflow/plugins/store/milvus/internal/bm25"
)

// details are what a search wants to know of a row, and what only this package
// reads, in one string: every field costs a server time, when it is written and
// when it is read.
type details struct {
	hash    []byte
	average float64 // length that the words were weighed with
	// The rest is left out where it would be too long for a string.
	complete  bool
	id, label string
	counts    bm25.Counts
}

var errDetails = errors.New("the details of a row are damaged: build the collection anew under another prefix")

// encode writes in base64: a byte that says whether the details are complete, the
// hash, the average, the id, the label, the length of the text, its words and how
// often they occur, as protobuf writes such values.
func (d details) encode() string {
	b := protowire.AppendBytes(make([]byte, 1, 256), d.hash)
	b = protowire.AppendFixed64(b, math.Float64bits(d.average))
	short := len(b)
	b[0] = 1
	b = protowire.AppendString(protowire.AppendString(b, d.id), d.label)
	b = protowire.AppendVarint(b, uint64(d.counts.Length))
	b = protowire.AppendBytes(protowire.AppendBytes(b, d.counts.Words), d.counts.Times)
	if base64.RawStdEncoding.EncodedLen(len(b)) > MaxBytes {
		b[0], b = 0, b[:short]
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// decodeDetails returns details that share memory.
func decodeDetails(text string) (details, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 {
		return details{}, errDetails
	}
	d := details{complete: b[0] == 1}
	r := reader{b[1:], true}
	d.hash, d.average = take(&r, protowire.ConsumeBytes), math.Float64frombits(take(&r, protowire.ConsumeFixed64))
	if d.complete {
		d.id, d.label = take(&r, protowire.ConsumeString), take(&r, protowire.ConsumeString)
		d.counts.Length = int(take(&r, protowire.ConsumeVarint))
		d.counts.Words, d.counts.Times = take(&r, protowire.ConsumeBytes), take(&r, protowire.ConsumeBytes)
	}
	if !r.ok || len(r.b) > 0 || !d.counts.Valid() {
		return details{}, errDetails
	}
	return d, nil
}

// reader is what is left of details, and whether all of them were there.
type reader struct {
	b  []byte
	ok bool
}

func take[T any](r *reader, consume func([]byte) (T, int)) T {
	v, n := consume(r.b)
	if n < 0 {
		r.b, r.ok = nil, false
		return v
	}
	r.b = r.b[n:]
	return v
}
