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

// memo is what a process leaves for later ones that read the same weights: the sum that they
// lead to. To compute it takes longer than all else at a start. The weights are the same where
// nobody has touched their files since and the sum before them, which has all that decides how
// they are read, is equal.
type memo struct {
	file    string // "": nothing is kept
	version string // of the weights' files
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
	// A folder of its own: the files beside it may be what a stage has learnt.
	return memo{filepath.Join(dir, "memos", "weights-"+hex.EncodeToString(name[:8])), version, about[:]}
}

// recall adds the weights to sum without reading them, if a process has left a memo.
func (m memo) recall(sum hash.Hash) bool {
	content, err := os.ReadFile(m.file)
	after, same := bytes.CutPrefix(content, m.about)
	return err == nil && same && sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(after) == nil
}

// keep leaves a memo of the sum, which the weights have been added to, unless they have changed
// meanwhile. Where it cannot be written, the next process reads the weights again.
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
