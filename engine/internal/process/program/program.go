package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Find lists what is named racflow-plugin-NAME in folders, in their order, without looking
// whether it can be started. Several of one name are all listed. A folder that does not exist
// has none, and one that is named twice counts once.
func Find(dirs []string) ([]Program, error) {
	var all []Program
	var seen []string
	for _, dir := range dirs {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("look for plugins: %s is not a folder", dir)
		}
		real, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) || slices.Contains(seen, real) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		seen = append(seen, real)
		for _, e := range entries {
			if name, ok := strings.CutPrefix(e.Name(), Prefix); ok && name != "" {
				p, err := At(filepath.Join(dir, e.Name()))
				if err != nil {
					return nil, err
				}
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// Prefix begins the name of every third party's program, and of the folder that belongs to one.
const Prefix = "racflow-plugin-"

// Program is a third party's program. A pipeline file uses its stages as NAME/STAGE.
type Program struct {
	Name    string // NAME of racflow-plugin-NAME
	Path    string // of the file that is executed, absolute
	Folder  string // that belongs to it as a whole, absolute; empty: the program is a single file
	Hash    string // what it has to be; empty: whatever it is
	Version string // as locked; empty: what it says of itself
	Origin  Origin
	Allow   Allow
	Project string // of a linked program: its author's folder
}

// Origin says on whose word a program is started.
type Origin string

// The origins.
const (
	Locked Origin = "locked" // by the lock of the pipeline file
	Linked Origin = "linked" // by its author, who installed it from the folder in which it is written
	Given  Origin = "given"  // by the person at the command line, who named its folder
)

// Allow is what a program may reach beyond its own folders.
type Allow struct {
	Read, Write []string // files and folders, absolute
	Hosts       []string // host:port
	Unconfined  bool     // everything that the person who runs racflow may reach
}

// Development reports whether the program is started on a person's word, not by a lock.
func (p Program) Development() bool { return p.Origin != Locked }

// At is the program that a file or a folder named racflow-plugin-NAME holds. It looks no
// further than whether there is a folder of that name: see Check.
func At(path string) (Program, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Program{}, err
	}
	name, ok := strings.CutPrefix(filepath.Base(path), Prefix)
	if !ok || name == "" {
		return Program{}, fmt.Errorf("%s is no plugin: a plugin is a program, or a folder with a program, named %sNAME", path, Prefix)
	}
	p := Program{Name: name, Path: path, Origin: Given}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		p.Folder, p.Path = path, filepath.Join(path, Prefix+name)
	}
	return p, nil
}

// whole is the file or folder that all of the program is in.
func (p Program) whole() string {
	if p.Folder != "" {
		return p.Folder
	}
	return p.Path
}
