package program

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/process/disk"
)

// Prefixes of hashes.
const (
	FileHash = "sha256:" // of a single file
	TreeHash = "tree:"   // of a folder
)

// Skipped reports whether a file or folder of this name never belongs to a program, because tools
// create it and can create it again.
func Skipped(name string) bool {
	return name == ".venv" || name == ".git" || name == "__pycache__"
}

// HashFile returns the sha256 of a file in hex.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// known caches the hashes of programs that this process has read, by their paths and parts.
var known sync.Map

// settled is the minimum age of a file from which its time reveals the next change.
const settled = 2 * time.Second

// hashOf returns the hash of the parts below a path. It reads them again only if they look
// different, because stages start often and programs are large.
func hashOf(path string, folder bool, parts []part) (string, error) {
	key := fmt.Sprint(path, folder, parts)
	if hash, ok := known.Load(key); ok {
		return hash.(string), nil
	}
	var hash string
	var err error
	begin := time.Now()
	if folder {
		hash, err = hashTree(path, parts)
	} else if hash, err = HashFile(path); err == nil {
		hash = FileHash + hash
	}
	if err != nil {
		return "", err
	}
	// File times are coarse, so a new file may change again and look the same.
	if !slices.ContainsFunc(parts, func(p part) bool { return begin.Sub(p.time) < settled }) {
		known.Store(key, hash)
	}
	return hash, nil
}

// hashTree hashes a folder: the sha256 of the sorted lines "HEX MODE NAME". HEX is the sha256 of the
// file's content. MODE is x if the file is executable, else -. For a symbolic link, HEX is the sha256
// of the target's name, and MODE is l.
func hashTree(dir string, parts []part) (string, error) {
	var lines []string
	for _, p := range parts {
		var hash, mode string
		switch {
		case p.mode.IsDir():
			continue
		case p.target != "":
			sum := sha256.Sum256([]byte(p.target))
			hash, mode = hex.EncodeToString(sum[:]), "l"
		default:
			var err error
			if hash, err = HashFile(filepath.Join(dir, filepath.FromSlash(p.name))); err != nil {
				return "", err
			}
			if mode = "-"; p.mode&0o111 != 0 {
				mode = "x"
			}
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s\n", hash, mode, p.name))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return TreeHash + hex.EncodeToString(sum[:]), nil
}

// link is the stored description of a linked program.
type link struct {
	Path    string `json:"path"`
	Folder  string `json:"folder,omitempty"`
	Project string `json:"project"`
	Hash    string `json:"hash"`
}

// links returns the folder with a file NAME.json for each linked program.
func links() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of plugins that are being written: %w", err)
	}
	return filepath.Join(dir, "racflow", "plugins"), nil
}

// Link registers a program with this user's racflow, in its current state, and replaces another one
// of its name. racflow starts the program only as long as it does not change.
func Link(p Program) error {
	p.Hash, p.Origin = "", Linked
	hash, err := p.Check()
	if err != nil {
		return err
	}
	dir, err := links()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(link{p.Path, p.Folder, p.Project, hash}, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.MakeFolder(dir); err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(dir, p.Name+".json"), append(raw, '\n'), false)
}

// Links lists the linked programs by name.
func Links() ([]Program, error) {
	dir, err := links()
	if err != nil {
		return nil, nil //nolint:nilerr // a user without a home folder has linked no program
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for plugins: %w", err)
	}
	var all []Program
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !e.Type().IsRegular() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("look for plugins: %w", err)
		}
		var l link
		if err := json.Unmarshal(raw, &l); err != nil || !filepath.IsAbs(l.Path) || l.Hash == "" {
			return nil, fmt.Errorf("%s does not say which plugin is installed: remove the file, and install the plugin again with racflow plugin install FOLDER --dev", filepath.Join(dir, e.Name()))
		}
		all = append(all, Program{Name: name, Path: l.Path, Folder: l.Folder, Hash: l.Hash, Origin: Linked, Project: l.Project})
	}
	return all, nil
}

// Unlink removes a linked program. The error is fs.ErrNotExist if no program has the name.
func Unlink(name string) error {
	dir, err := links()
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, filepath.Base(name)+".json"))
}

// part describes a file, folder or link of a program without its content.
type part struct {
	name   string // relative to the folder, with slashes; the name of a single file
	target string // of a symbolic link
	mode   fs.FileMode
	size   int64
	time   time.Time
}

// parts lists the files of the program. It refuses files that other users could change, and links
// that lead out of the program's folder.
func (p Program) parts() ([]part, error) {
	around := filepath.Dir(p.container())
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
		case info.IsDir(): // without its time, which also changes with files that do not belong to the program
			err = p.private(path, info)
		default:
			err = fmt.Errorf("%s is neither a file nor a folder: a plugin's folder holds nothing else", path)
		}
		all = append(all, one)
		return err
	})
	return all, err
}

// single returns the parts of a single file. A user may name a link to the file; an installed program
// is never a link.
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

// skip skips a file that does not belong to the program. An installed program must not have such
// files: somebody added them later, and an interpreter may prefer them to the locked ones.
func (p Program) skip(path string, e fs.DirEntry) error {
	if p.Origin == Locked {
		return fmt.Errorf("%s was not there when the plugin was installed: remove it", path)
	}
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// private refuses a file that anybody but its owner may change: everybody or, for an installed
// program, also a group.
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

// inside returns the target of a link, which has to lead to a part of the program.
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
