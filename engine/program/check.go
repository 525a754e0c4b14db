package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check reports whether the program is safe to start, and what it is by its content: it is a
// regular file that may be executed, no link leads out of its folder, nobody but its owner can
// change it, and its hash is the one that it has to have. It starts nothing.
//
// A program is read once for as long as its files look the same.
func (p Program) Check() (hash string, err error) {
	parts, err := p.parts()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.Folder != "":
		return "", fmt.Errorf("%s holds no program named %s", p.Folder, filepath.Base(p.Path))
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file that could be executed", p.Path)
	case info.Mode()&0o111 == 0:
		return "", fmt.Errorf("%s may not be executed; try: chmod +x %s", p.Path, p.Path)
	}
	if hash, err = hashOf(p.whole(), p.Folder != "", parts); err != nil {
		return "", fmt.Errorf("read the plugin, to know what it is: %w", err)
	}
	if p.Hash != "" && hash != p.Hash {
		return "", p.changed(hash)
	}
	return hash, nil
}

// changed says that the program is not what it has to be.
func (p Program) changed(hash string) error {
	switch p.Origin {
	case Linked:
		return fmt.Errorf("%s has changed since it was installed for development: install it again with racflow plugin install %s --dev", p.whole(), p.Project)
	case Locked:
		return fmt.Errorf("%s is not the program that was locked: its hash is %s, not %s. It was changed after it was installed: "+
			"remove it with racflow plugin remove %s, and install it again with racflow plugin init", p.whole(), hash, p.Hash, p.Name)
	}
	return fmt.Errorf("%s has the hash %s, not %s", p.whole(), hash, p.Hash)
}
