package tune

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"

	"github.com/racflow/racflow/engine/source"
)

// mark begins the comment of a file of variables that says what they were
// tuned on. What follows is the SHA-256 of that file, in hex.
const mark = "# tuned on sha256 "

// Digest is the SHA-256 of a file, in hex; of a glob what package source says.
func Digest(path string) (string, error) {
	if source.IsGlob(path) {
		return source.Digest(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// TunedOn returns the digests of the files that the variables in a file were
// tuned on.
func TunedOn(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			digest, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			all = append(all, strings.TrimSuffix(digest, ","))
		}
	}
	return all, nil
}
