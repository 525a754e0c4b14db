package linear

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

const (
	stateFile = "weights"
	version   = "racflow linear 2\n"
)

// header stands before the numbers of a state.
type header struct {
	Labels    []string `json:"labels"`
	Dimension int      `json:"dimension"`
	Features  int      `json:"features"`
	Scale     float32  `json:"scale"`
}

// writeState writes the model into a folder: the version, the header's length and JSON,
// the idf of each bucket, the weights by input, and a checksum
// of all that. Numbers are little-endian, weights float32.
func (m *model) writeState(dir string) error {
	head, err := json.Marshal(header{m.labels, m.dimension, len(m.idf), m.scale})
	if err != nil {
		return err
	}
	state := binary.LittleEndian.AppendUint32([]byte(version), uint32(len(head)))
	state = append(state, head...)
	state = appendFloats(state, m.idf)
	for at := 0; at < len(m.weights); at += m.width {
		state = appendFloats(state, m.weights[at:][:len(m.labels)])
	}
	sum := sha256.Sum256(state)
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".new", append(state, sum[:]...), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func appendFloats(to []byte, all []float32) []byte {
	for _, x := range all {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}
	return to
}

// readState reads the model of a folder; nil: it has none.
func readState(dir string) (*model, error) {
	if dir == "" {
		return nil, nil
	}
	file := filepath.Join(dir, stateFile)
	state, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := parse(state)
	if err != nil {
		return nil, fmt.Errorf("what was learnt cannot be read: %w; remove the folder %s, and it is learnt anew", err, dir)
	}
	return m, nil
}

func parse(state []byte) (*model, error) {
	body, sum := state[:max(len(state)-sha256.Size, 0)], state[max(len(state)-sha256.Size, 0):]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, errors.New("the file is damaged")
	}
	if !bytes.HasPrefix(body, []byte(version)) {
		return nil, errors.New("the file is of another version of racflow")
	}
	// The checksum holds: the rest is as writeState wrote it.
	body = body[len(version):]
	size := binary.LittleEndian.Uint32(body)
	var h header
	if err := json.Unmarshal(body[4:4+size], &h); err != nil {
		return nil, err
	}
	body = body[4+size:]
	idf := make([]float32, h.Features)
	body = takeFloats(idf, body)
	m := newModel(h.Labels, h.Dimension, idf)
	m.scale = h.Scale
	for at := 0; at < len(m.weights); at += m.width {
		body = takeFloats(m.weights[at:][:len(m.labels)], body)
	}
	return m, nil
}

func takeFloats(to []float32, from []byte) (rest []byte) {
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
	}
	return from[4*len(to):]
}
