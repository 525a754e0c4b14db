package pipeline

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// OwnVariables begins the names of racflow's own variables of the environment.
const OwnVariables = "RACFLOW_"

// Folder returns the folder of a pipeline file: the checkout that holds it, up to the folder with .git, or else
// the folder that it lies in. A checkout of somebody's whole home is not meant.
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

// resolved returns an absolute path without symbolic links, also without those to what does not exist.
func resolved(path string) string {
	at, err := filepath.Abs(path)
	if err != nil { // there is no working directory
		return path
	}
	return cage.Follow(at, func(string, string) {})
}

// isAddress reports whether a text is the address of a service, without a name or password.
func isAddress(text string) bool {
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u.Host != "" && u.User == nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, "/@ ") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// Folder returns the file's folder.
func (f *File) Folder() string { return f.loader.folder() }

func (l *loader) folder() string {
	if l.home == "" {
		l.home = Folder(absolute(l.file.Path, l.Dir))
	}
	return l.home
}

// Said returns what people said beside the file: values, paths and addresses, on the command line and in variables of
// the environment. Paths are as they were written.
func (f *File) Said() []string {
	l := f.loader
	said := append(slices.Clone(l.VarFiles), l.Input)
	for _, value := range l.Vars {
		said = append(said, value)
	}
	for _, o := range l.Set {
		said = append(said, o.Value)
	}
	for _, v := range f.Variables {
		if strings.HasPrefix(v.From, OwnVariables) {
			said = append(said, v.Value)
		}
	}
	for _, e := range f.Environment {
		if value, _ := l.Getenv(e.Name); e.Address && !e.Secret {
			said = append(said, value)
		}
	}
	return slices.DeleteFunc(said, func(text string) bool { return text == "" })
}

// IsSaid reports whether a person named a path, or a folder above it, beside the file.
func (f *File) IsSaid(path string) bool {
	return slices.ContainsFunc(f.Said(), func(said string) bool {
		rel, err := filepath.Rel(resolved(absolute(said, f.loader.Dir)), resolved(path))
		return err == nil && filepath.IsLocal(rel)
	})
}
