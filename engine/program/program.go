package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

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
