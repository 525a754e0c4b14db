package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/plugins/internal/tokenizer"
)

// openTokenizer reads the tokenizer in a folder, and writes what its ids depend on to sum.
func openTokenizer(dir string, sum io.Writer) (*tokenizer.Tokenizer, error) {
	t, err := tokenizer.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: give the folder that holds tokenizer.json, or the vocab.txt of an uncased BERT", err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil {
		_, err = fmt.Fprintln(sum, t.Fingerprint())
		return t, err
	}
	// The vocabulary of an uncased model goes into the sum as it did when there was nothing else.
	vocabulary, err := os.ReadFile(filepath.Join(dir, "vocab.txt"))
	if err != nil {
		return nil, fmt.Errorf("open the model: %w", err)
	}
	own := sha256.Sum256(vocabulary)
	if t.Fingerprint() != hex.EncodeToString(own[:]) {
		vocabulary = append(vocabulary, t.Fingerprint()...)
	}
	_, err = sum.Write(vocabulary)
	return t, err
}

// ignoresCase reports whether capital letters make no difference to the tokens.
func ignoresCase(t *tokenizer.Tokenizer) bool {
	for _, pair := range [][2]string{{"ABCDEFGHIJKLM", "abcdefghijklm"}, {"NOPQRSTUVWXYZ", "nopqrstuvwxyz"}, {"The House", "the house"}} {
		if !slices.Equal(t.Encode(pair[0], 100), t.Encode(pair[1], 100)) {
			return false
		}
	}
	return true
}
