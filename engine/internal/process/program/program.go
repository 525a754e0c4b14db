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

// Program is a third-party program. A pipeline file refers to its stages as NAME/STAGE.
type Program struct {
	Name    string // NAME of racflow-plugin-NAME
	Path    string // absolute path of the executable file
	Folder  string // absolute path of the folder that belongs to it; empty: the program is a single file
	Hash    string // required hash; empty: any
	Version string // as locked; empty: the program itself states it
	Origin  Origin
	Allow   Allow
	Project string // of a linked program: its author's folder
}

// Check reports whether the program is safe to start, and returns its hash. The program has to be
// an executable regular file that only its owner can change, its links must not leave its folder,
// and its hash has to match Hash. Check starts nothing.
//
// Check reads a program once for as long as its files look the same.
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
	if hash, err = hashOf(p.container(), p.Folder != "", parts); err != nil {
		return "", fmt.Errorf("read the plugin, to know what it is: %w", err)
	}
	if p.Hash != "" && hash != p.Hash {
		return "", p.changed(hash)
	}
	return hash, nil
}

// changed returns the error for a program whose hash does not match.
func (p Program) changed(hash string) error {
	switch p.Origin {
	case Linked:
		return fmt.Errorf("%s has changed since it was installed for development: install it again with racflow plugin install %s --dev", p.container(), p.Project)
	case Locked:
		return fmt.Errorf("%s is not the program that was locked: its hash is %s, not %s. It was changed after it was installed: "+
			"remove it with racflow plugin remove %s, and install it again with racflow plugin init", p.container(), hash, p.Hash, p.Name)
	}
	return fmt.Errorf("%s has the hash %s, not %s", p.container(), hash, p.Hash)
}

// Find lists the files and folders named racflow-plugin-NAME in dirs, in that order, without
// checking whether they can start. It lists all programs of the same name. It skips folders that do
// not exist and reads a repeated folder once.
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

// Prefix starts the name of every third-party program and of its folder.
const Prefix = "racflow-plugin-"

// Origin says who vouches for a program.
type Origin string

// The origins of a program.
const (
	Locked Origin = "locked" // the lock of the pipeline file
	Linked Origin = "linked" // its author, who installed it from its source folder
	Given  Origin = "given"  // the user, who named its folder on the command line
)

// Allow lists what a program may reach beyond its own folders.
type Allow struct {
	Read, Write []string // files and folders, absolute
	Hosts       []string // host:port
	Disk        int64    // bytes that its own folders may hold; 0: DefaultDisk
	Unconfined  bool     // everything that the user who runs racflow may reach
}

// DefaultDisk is how many bytes a plugin's own folders may hold unless stated otherwise.
const DefaultDisk = 16 << 30

// Development reports whether the program starts on a person's word, without a lock.
func (p Program) Development() bool { return p.Origin != Locked }

// At returns the program in a file or folder named racflow-plugin-NAME. It only checks whether the
// path is a folder; see Check for more.
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

// container returns the file or folder that contains the whole program.
func (p Program) container() string {
	if p.Folder != "" {
		return p.Folder
	}
	return p.Path
}
