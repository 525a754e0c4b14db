package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/engine/journal/sealed"
	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/source"
)

// Current is the Format of runs that are kept now: each line and file has a checksum.
const Current = 1

// name is that of the file in a run's folder.
const name = "manifest.json"

// ErrChanged says that a manifest is not as it was written.
var ErrChanged = errors.New("its manifest.json was changed after it was written, so nobody knows what was run: put the old file back, or remove the run with racflow runs rm")

// Write writes the manifest of a run into its folder. With sync, it is on the disk then.
func (m Manifest) Write(dir string, sync bool) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return private.WriteFile(filepath.Join(dir, name), sealed.File(text), sync)
}

// Read reads the manifest of a run from its folder. The error is fs.ErrNotExist where there
// is none, and ErrChanged where it is not as it was written.
func Read(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return m, err
	}
	state := sealed.Check(text)
	err = json.Unmarshal(text, &m)
	switch {
	case state == sealed.Changed || state == sealed.Without && (err != nil || m.Format > 0):
		return Manifest{}, ErrChanged
	case err == nil && m.Format > Current:
		return Manifest{}, fmt.Errorf("a newer racflow kept it, in format %d; this one reads formats up to %d", m.Format, Current)
	case err == nil && m.ID != filepath.Base(dir):
		return Manifest{}, fmt.Errorf("its manifest is of run %q", m.ID)
	}
	return m, err
}

// Has reports whether a folder is that of a run that got so far as to have a manifest.
func Has(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// Rows opens the input of the run, whose texts the journal does not have. It fails where
// the file is another than it was.
func (m Manifest) Rows() (*source.Reader, error) {
	if m.Columns == nil {
		return nil, fmt.Errorf("run %s does not say how its input is read, since an older racflow kept it: run it again", m.ID)
	}
	same, err := m.Input.Unchanged()
	if err != nil {
		return nil, fmt.Errorf("run %s has no texts, and its input cannot be read again: %w; put the file back, or run it again", m.ID, err)
	}
	if !same {
		return nil, fmt.Errorf("run %s has no texts, and its input %s has changed since: put the old file back, or run it again", m.ID, m.Input.Path)
	}
	c := m.Columns
	return source.Open(m.Input.Path, c.Form, source.Mapping{ID: c.ID, Text: c.Text, Label: c.Label, Meta: []string{}, Fields: true}, nil)
}
