package remote

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// MaxState is how many bytes the files of a fitted embedder have together.
const MaxState = 64 << 10

// State is what Fit has written into the stage's folder, packed, so that it can be stored
// with the vectors that depend on it.
func (s *Stage) State() ([]byte, error) {
	entries, err := os.ReadDir(s.StateDir)
	if err != nil {
		return nil, fmt.Errorf("read what was learnt: %w", err)
	}
	var packed bytes.Buffer
	w, size := tar.NewWriter(&packed), 0
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(s.StateDir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read what was learnt: %w", err)
		}
		if size += len(content); size > MaxState {
			return nil, fmt.Errorf("%s has written more than %d bytes into its folder while it was fitted", s.name(), MaxState)
		}
		header := &tar.Header{Name: e.Name(), Mode: 0o600, Size: int64(len(content))}
		if err = w.WriteHeader(header); err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, fmt.Errorf("pack what was learnt: %w", err)
		}
	}
	if size == 0 {
		return nil, fmt.Errorf("%s has written nothing into its folder while it was fitted", s.name())
	}
	return packed.Bytes(), w.Close()
}

// StateDir returns a folder below dir for an embedder that fits: with the files that State packed, or
// a new one where there is no state yet. The same one may be made by several processes at a time.
func StateDir(dir string, state []byte) (string, error) {
	if state == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		return os.MkdirTemp(dir, "new-")
	}
	sum := sha256.Sum256(state)
	dir = filepath.Join(dir, "fit-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, unpack(dir, state)
}

func unpack(dir string, state []byte) error {
	for r := tar.NewReader(bytes.NewReader(state)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(r)
		}
		if err != nil {
			return fmt.Errorf("what the embedder has learnt cannot be read; rebuild the knowledge: %w", err)
		}
		path := filepath.Join(dir, filepath.Base(header.Name))
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			continue
		}
		f, err := os.CreateTemp(dir, ".new-*")
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return fmt.Errorf("write what the embedder has learnt: %w", err)
		}
	}
}
