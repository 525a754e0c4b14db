package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/private"
)

// copiedPrefix begins the names of files that say how far a source was copied, as a decimal number.
const copiedPrefix = "copied-"

// Copied returns how far the values of a source, such as a run on other machines, were copied into the
// folder: what KeepCopied was given last. 0: nothing was, or the folder was cleared since.
func (c *Cache) Copied(source string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, copiedPrefix+source))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // 0 of what cannot be read: it is copied again
	return n, err
}

// KeepCopied keeps that. A source is named by letters and digits.
func (c *Cache) KeepCopied(source string, n uint64) error {
	if err := private.MakeFolder(c.dir); err != nil {
		return err
	}
	path := filepath.Join(c.dir, copiedPrefix+source)
	if err := os.WriteFile(path+draft, fmt.Appendln(nil, n), private.FileMode); err != nil {
		return err
	}
	return os.Rename(path+draft, path)
}

// ForgetCopied forgets how far a source was copied into a folder: it is not there any more.
func ForgetCopied(dir, source string) error {
	err := os.Remove(filepath.Join(dir, copiedPrefix+source))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// forgetCopied forgets how far sources were copied into a folder that holds nothing any more.
func forgetCopied(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, copiedPrefix+"*")) // at worst they stay
	for _, path := range paths {
		_ = os.Remove(path)
	}
}
