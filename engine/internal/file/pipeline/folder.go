package pipeline

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// Folder returns the folder of a pipeline file: the checkout that holds it, up to the folder with .git,
// otherwise the folder of the file itself. A checkout of a user's whole home does not count.
func Folder(path string) string {
	own := resolved(filepath.Dir(path))
	for dir := own; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && !holdsHome(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return own
		}
	}
}

// Inside reports whether a path lies in a folder, with links followed. In a folder that holds the user's home,
// hidden files and folders, such as .ssh, do not count.
func Inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, resolved(path))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	isHidden := func(name string) bool { return strings.HasPrefix(name, ".") && name != "." }
	return !holdsHome(folder) || !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), isHidden)
}

// holdsHome reports whether a folder is the user's home, or one above it.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return false
	}
	rel, err := filepath.Rel(dir, resolved(home))
	return err == nil && filepath.IsLocal(rel)
}

// resolved returns an absolute path without symbolic links, even if the path does not exist.
func resolved(path string) string {
	at, err := filepath.Abs(path)
	if err != nil { // there is no working directory
		return path
	}
	return cage.Follow(at, func(string, string) {})
}

// Folder returns the file's folder.
func (f *File) Folder() string { return f.loader.folder() }

func (l *loader) folder() string {
	if l.home == "" {
		l.home = Folder(absolute(l.file.Path, l.Dir))
	}
	return l.home
}
