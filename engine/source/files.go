package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// IsGlob reports whether a path stands for several files. A file that has such a name is
// itself.
func IsGlob(path string) bool {
	if path == "-" || !strings.ContainsAny(path, "*?[{") {
		return false
	}
	_, err := os.Stat(path)
	return err != nil
}

// Files are the files that a path stands for, sorted: of a glob all that match.
func Files(path string) ([]string, error) {
	if !IsGlob(path) {
		return []string{path}, nil
	}
	files, err := doublestar.FilepathGlob(path, doublestar.WithFilesOnly(), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s: mend the pattern, or name a file", path)
	}
	slices.Sort(files)
	return files, nil
}

// Regular reports whether a path stands for regular files alone, which can be read more than
// once.
func Regular(path string) bool {
	files, err := Files(path)
	return err == nil && path != "-" && sizeOf(files) >= 0
}

// sizeOf is how large files are together; -1: one of them is no regular file.
func sizeOf(files []string) (size int64) {
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		size += info.Size()
	}
	return size
}

// Digest is what Reader.Digest gives at the end of a source, without parsing it; empty for
// standard input and pipes, which can be read only once.
func Digest(path string) (string, error) {
	if path == "-" {
		return "", nil
	}
	files, err := Files(path)
	if err != nil {
		return "", err
	}
	digests := make([]string, len(files))
	for i, name := range files {
		if digests[i], err = fileDigest(name); err != nil || digests[i] == "" {
			return "", err
		}
	}
	if !IsGlob(path) {
		return digests[0], nil
	}
	return digestOf(digests), nil
}

// fileDigest is the hash of a regular file.
func fileDigest(path string) (string, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return hashOf(f)
}

func hashOf(in io.Reader) (string, error) {
	h := sha256.New()
	_, err := io.Copy(h, in)
	return hex.EncodeToString(h.Sum(nil)), err
}

// digestOf identifies what the files of a glob hold, by the digests of each.
func digestOf(digests []string) string {
	sum := sha256.Sum256([]byte(strings.Join(digests, "\n")))
	return hex.EncodeToString(sum[:])
}
