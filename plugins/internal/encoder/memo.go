package encoder

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/safetensors"
)

// memo stores the hash of a model's weights for later processes. Computing it takes longer than the rest of the
// start. The stored hash is valid if nobody has changed the weights' files since, and if the hash before the weights
// is equal. That hash covers everything that decides how the weights are read.
type memo struct {
	file    string // "": nothing is kept
	version string // of the weight files
	about   []byte
}

func newMemo(dir string, weights *safetensors.Weights, sum hash.Hash) memo {
	version := weights.Version()
	before, err := sum.(encoding.BinaryMarshaler).MarshalBinary()
	if dir == "" || version == "" || err != nil {
		return memo{}
	}
	name := sha256.Sum256([]byte(weights.Name()))
	about := sha256.Sum256(fmt.Append(before, version))
	// A separate folder: the files beside it may be the learned state of a stage.
	return memo{filepath.Join(dir, "memos", "weights-"+hex.EncodeToString(name[:8])), version, about[:]}
}

// recall adds the weights to sum without reading them, if there is a valid memo.
func (m memo) recall(sum hash.Hash) bool {
	content, err := os.ReadFile(m.file)
	after, same := bytes.CutPrefix(content, m.about)
	return err == nil && same && sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(after) == nil
}

// keep stores a memo of sum, which includes the weights, unless the weights have changed meanwhile. If this fails,
// the next process reads the weights again.
func (m memo) keep(weights *safetensors.Weights, sum hash.Hash) {
	after, err := sum.(encoding.BinaryMarshaler).MarshalBinary()
	if m.file == "" || err != nil || weights.Version() != m.version || os.MkdirAll(filepath.Dir(m.file), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(m.file), ".new-*")
	if err != nil {
		return
	}
	_, err = f.Write(append(m.about, after...))
	if f.Close() != nil || err != nil || os.Rename(f.Name(), m.file) != nil {
		_ = os.Remove(f.Name())
	}
}
