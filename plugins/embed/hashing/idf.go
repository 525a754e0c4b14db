package hashing

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/racflow/racflow/plugins/internal/hashed"
)

const (
	buckets      = 1 << 15
	stateVersion = 1
	stateSize    = 1 + 4 + buckets
)

// bucket is where a feature's document frequency is counted.
func bucket(hash uint64) int { return int(hash >> 40 % buckets) }

// counts are document frequencies while fitting.
type counts struct {
	texts int
	df    [buckets]int32
}

// add counts a text. Features that share a bucket may count it twice, which state
// bounds.
func (c *counts) add(x *hashed.Extractor, text string) {
	c.texts++
	x.Each(text, func(hash uint64, _ float32, _ int) { c.df[bucket(hash)]++ })
}

// state encodes the counts: a version, the greatest possible ln((N+1)/(df+1)) as a
// little-endian float32, and the value of each bucket in 255ths of it.
func (c *counts) state() []byte {
	greatest := math.Log(float64(c.texts + 1))
	state := make([]byte, 0, stateSize)
	state = append(state, stateVersion)
	state = binary.LittleEndian.AppendUint32(state, math.Float32bits(float32(greatest)))
	for _, df := range c.df {
		df := min(int(df), c.texts)
		code := byte(0)
		if c.texts > 0 {
			code = byte(math.Round(255 * math.Log(float64(c.texts+1)/float64(df+1)) / greatest))
		}
		state = append(state, code)
	}
	return state
}

// idf is a decoded state; nil gives every feature the same weight.
type idf struct {
	codes []byte       // by bucket
	value [256]float32 // by code
}

// readState is the inverse of counts.state.
func readState(state []byte) (*idf, error) {
	if len(state) != stateSize || state[0] != stateVersion {
		return nil, errors.New("the document frequencies are not of this version of hashing; build the knowledge anew")
	}
	greatest := math.Float32frombits(binary.LittleEndian.Uint32(state[1:]))
	t := &idf{codes: state[5:]}
	for code := range t.value {
		// The conversion keeps a compiler from fusing the operations.
		t.value[code] = 1 + float32(greatest*float32(code)/255)
	}
	return t, nil
}

func (t *idf) of(hash uint64) float32 {
	if t == nil {
		return 1
	}
	return t.value[t.codes[bucket(hash)]]
}
