package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// part is a file, folder or link of a program, as it looks without reading it.
type part struct {
	name   string // relative to the folder, with slashes; of a single file its name
	target string // of a symbolic link
	mode   fs.FileMode
	size   int64
	time   time.Time
}

// parts lists what the program is made of, and refuses what others could change and links that
// lead out of its folder.
func (p Program) parts() ([]part, error) {
	around := filepath.Dir(p.whole())
	if info, err := os.Stat(around); err == nil && info.Mode()&fs.ModeSticky == 0 {
		if err := p.private(around, info); err != nil {
			return nil, err
		}
	}
	if p.Folder == "" {
		return p.single()
	}
	root, err := filepath.EvalSymlinks(p.Folder)
	if err != nil {
		return nil, err
	}
	var all []part
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && Skipped(e.Name()) {
			return p.skip(path, e)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		one := part{name: filepath.ToSlash(strings.TrimPrefix(path[len(root):], string(filepath.Separator))), mode: info.Mode()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			one.target, err = inside(root, path)
		case info.Mode().IsRegular():
			one.size, one.time = info.Size(), info.ModTime()
			err = p.private(path, info)
		case info.IsDir(): // its time changes with what does not belong to the program
			err = p.private(path, info)
		default:
			err = fmt.Errorf("%s is neither a file nor a folder: a plugin's folder holds nothing else", path)
		}
		all = append(all, one)
		return err
	})
	return all, err
}

// single is parts of a single file. A person may name a link to it; what is installed is none.
func (p Program) single() ([]part, error) {
	info, err := os.Lstat(p.Path)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if p.Origin == Locked {
			return nil, fmt.Errorf("%s is a symbolic link, which no installed program is: remove it, and install the plugin again", p.Path)
		}
		info, err = os.Stat(p.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no program %s", p.Path)
	}
	if err != nil {
		return nil, err
	}
	return []part{{name: filepath.Base(p.Path), mode: info.Mode(), size: info.Size(), time: info.ModTime()}}, p.private(p.Path, info)
}

// skip passes over what does not belong to a program. An installed one has nothing of it: what
// lies there was put there later, and an interpreter may prefer it to what was locked.
func (p Program) skip(path string, e fs.DirEntry) error {
	if p.Origin == Locked {
		return fmt.Errorf("%s was not there when the plugin was installed: remove it", path)
	}
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// private refuses what people beside its owner may change: anybody, and of an installed program
// a group too.
func (p Program) private(path string, info fs.FileInfo) error {
	others, who := fs.FileMode(0o002), "everybody"
	if p.Origin == Locked {
		others, who = 0o022, "others"
	}
	if info.Mode()&others == 0 {
		return nil
	}
	return fmt.Errorf("%s may be changed by %s on this machine, so nobody knows what would be started; try: chmod go-w %s", path, who, path)
}

// inside is the target of a link, which has to lead to what belongs to the program.
func inside(root, path string) (string, error) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", err
	}
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("the link %s leads nowhere: %w", path, err)
	}
	rel, err := filepath.Rel(root, end)
	if err != nil || !filepath.IsLocal(rel) || filepath.IsAbs(target) {
		return "", fmt.Errorf("the link %s leads out of the plugin's folder, to %s: a plugin is started with what belongs to it alone", path, target)
	}
	if slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), Skipped) {
		return "", fmt.Errorf("the link %s leads to %s, which does not belong to the plugin", path, target)
	}
	return target, nil
}
