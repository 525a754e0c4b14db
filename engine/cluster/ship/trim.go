package ship

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Folder names a set of files by all that is in it: what has one name has the same content.
func Folder(files []Shipped) string {
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b Shipped) int { return strings.Compare(a.Name, b.Name) })
	text, _ := json.Marshal(sorted) // texts and numbers always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Trim removes kept files that nobody has asked for since a time, and what workers have left that were
// killed. State folders that have links of them keep their content.
func (k Kept) Trim(before time.Time) error {
	entries, err := os.ReadDir(k.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		info, statErr := e.Info()
		if statErr != nil || info.ModTime().After(before) {
			continue
		}
		if removed := os.Remove(filepath.Join(k.Dir, e.Name())); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
