package flat

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// format is the first byte of a content; a gob-encoded content follows.
const format = 1

// content is what a place stores of a collection.
type content struct {
	Name    string
	Schema  sdk.Schema
	Note    []byte
	Entries []sdk.Entry // by id
}

// version is a committed state of a collection. It never changes.
type version struct {
	*content
	sum   [sha256.Size]byte // of the bytes that it was read from, or written as; zero: not saved yet
	norms []float64         // of the vectors
	words func() *words     // of the lexical leg, counted when it is first searched
}

func (c *content) version() *version {
	v := &version{content: c, norms: make([]float64, len(c.Entries))}
	for i, e := range c.Entries {
		v.norms[i] = norm(e.Vector)
	}
	v.words = sync.OnceValue(func() *words { return count(c) })
	return v
}

func norm(vector []float32) float64 {
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func decode(raw []byte) (*version, error) {
	if len(raw) == 0 || raw[0] != format {
		return nil, errors.New("it was not written by this version of the store: remove it, and build the knowledge again")
	}
	c := &content{}
	if err := gob.NewDecoder(bytes.NewReader(raw[1:])).Decode(c); err != nil {
		return nil, fmt.Errorf("it is damaged (%w): remove it, and build the knowledge again", err)
	}
	for _, e := range c.Entries {
		if len(e.Vector) != c.Schema.Dimension {
			return nil, errors.New("it is damaged: remove it, and build the knowledge again")
		}
	}
	v := c.version()
	v.sum = sha256.Sum256(raw)
	return v, nil
}

func (v *version) hash() (sum [sha256.Size]byte) {
	if v != nil {
		sum = v.sum
	}
	return sum
}

func (v *version) state() sdk.Collection {
	return sdk.Collection{Name: v.Name, Entries: len(v.Entries), Dimension: v.Schema.Dimension, Note: v.Note}
}

// with returns the version after changes, and the bytes to store.
func (v *version) with(changes map[string]*sdk.Entry, note []byte) (*version, []byte, error) {
	c := &content{Name: v.Name, Schema: v.Schema, Note: note}
	for _, e := range v.Entries {
		if _, changed := changes[e.ID]; !changed {
			c.Entries = append(c.Entries, e)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		if e := changes[id]; e != nil {
			c.Entries = append(c.Entries, *e)
		}
	}
	slices.SortFunc(c.Entries, func(a, b sdk.Entry) int { return cmp.Compare(a.ID, b.ID) })
	raw := bytes.NewBuffer([]byte{format})
	if err := gob.NewEncoder(raw).Encode(c); err != nil {
		return nil, nil, err
	}
	next := c.version()
	next.sum = sha256.Sum256(raw.Bytes())
	return next, raw.Bytes(), nil
}

// find returns the position of an id, or the position where it would be inserted.
func (v *version) find(id string) (int, bool) {
	return slices.BinarySearchFunc(v.Entries, id, func(e sdk.Entry, id string) int { return cmp.Compare(e.ID, id) })
}
