package local

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

var le = binary.LittleEndian

func appendSchema(b []byte, s sdk.Schema) []byte {
	return append(le.AppendUint32(b, uint32(s.Dimension)), s.Analyzer...)
}

func appendCommit(b []byte, offset int64, next uint64, note []byte) []byte {
	b = append(b, commitMark...)
	b = le.AppendUint64(b, uint64(offset))
	b = le.AppendUint64(b, next)
	return append(b, note...)
}

func appendDelete(b []byte, ids []string) []byte {
	return appendColumn(le.AppendUint32(b, uint32(len(ids))), ids)
}

func appendPut(b []byte, p *batch) []byte {
	n := len(p.rows)
	b = le.AppendUint32(b, uint32(n))
	b = le.AppendUint32(b, uint32(len(p.vectors)/max(n, 1)))
	for i := range p.rows {
		b = le.AppendUint64(b, p.rows[i].sequence)
	}
	column := make([]string, n)
	for c := range (&row{}).columns() {
		for i := range p.rows {
			column[i] = *p.rows[i].columns()[c]
		}
		b = appendColumn(b, column)
	}
	at := len(b)
	b = slices.Grow(b, 4*len(p.vectors))[:at+4*len(p.vectors)]
	for i, x := range p.vectors {
		le.PutUint32(b[at+4*i:], math.Float32bits(x))
	}
	return b
}

func appendColumn(b []byte, values []string) []byte {
	for _, v := range values {
		b = le.AppendUint32(b, uint32(len(v)))
	}
	for _, v := range values {
		b = append(b, v...)
	}
	return b
}

// appendMeta encodes metadata. It reports false for a value of a type that
// metadata cannot have.
func appendMeta(b []byte, m sdk.Meta) ([]byte, bool) {
	if len(m) == 0 {
		return b, true
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = le.AppendUint32(b, uint32(len(m)))
	for _, k := range keys {
		b = append(le.AppendUint32(b, uint32(len(k))), k...)
		switch v := m[k].(type) {
		case string:
			b = append(le.AppendUint32(append(b, 's'), uint32(len(v))), v...)
		case float64:
			b = le.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case bool:
			if v {
				b = append(b, '1')
			} else {
				b = append(b, '0')
			}
		default:
			return nil, false
		}
	}
	return b, true
}
