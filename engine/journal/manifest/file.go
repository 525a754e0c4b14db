package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"time"

	"github.com/racflow/racflow/engine/source"
)

// File is a file with what its content is recognised by: its hash or, where it
// is large, size and time.
type File struct {
	Path     string    `json:"path"` // "-": standard input
	SHA256   string    `json:"sha256,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
}

// maxHashed is the size of the largest file that is hashed, in bytes: that
// takes about as long as it takes a stage to start.
const maxHashed = 256 << 20

// NewFile looks at a file.
func NewFile(path string) (File, error) {
	f := File{Path: path}
	if path == "-" {
		return f, nil
	}
	if source.IsGlob(path) {
		var err error
		f.SHA256, err = source.Digest(path)
		return f, err
	}
	in, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return f, err
	}
	f.Size = info.Size()
	if !info.Mode().IsRegular() || f.Size > maxHashed {
		f.Modified = info.ModTime().UTC()
		return f, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return f, err
	}
	f.SHA256 = hex.EncodeToString(h.Sum(nil))
	return f, nil
}

// Unchanged reports whether the file has the content that it had. The error says why it
// cannot be read.
func (f File) Unchanged() (bool, error) {
	now, err := NewFile(f.Path)
	return f.Same(now), err
}

// Same reports whether two files have the same content.
func (f File) Same(other File) bool {
	return f.SHA256 == other.SHA256 && f.Size == other.Size && f.Modified.Equal(other.Modified)
}
