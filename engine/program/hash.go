package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The beginnings of hashes.
const (
	FileHash = "sha256:" // of a single file
	TreeHash = "tree:"   // of a folder
)

// Skipped reports whether a file or folder of this name never belongs to a program: what
// tools make beside it, and make anew.
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

// known are hashes of programs that this process has read, with how their parts looked then.
var known = struct {
	sync.Mutex
	of map[string]hashed
}{of: map[string]hashed{}}

// settled is how long ago a file was written whose next change is seen by its time.
const settled = 2 * time.Second

type hashed struct {
	parts []part
	hash  string
}

// hashOf is the hash of the parts below a path. They are read once for as long as they look the
// same, since stages start often and programs are large.
func hashOf(path string, folder bool, parts []part) (string, error) {
	key := fmt.Sprint(path, folder)
	known.Lock()
	before, ok := known.of[key]
	known.Unlock()
	if ok && slices.Equal(before.parts, parts) {
		return before.hash, nil
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
	if slices.ContainsFunc(parts, func(p part) bool { return begin.Sub(p.time) < settled }) {
		return hash, nil // it may change again and look the same: times of files have steps
	}
	known.Lock()
	known.of[key] = hashed{parts, hash}
	known.Unlock()
	return hash, nil
}

// hashTree hashes a folder: the sha256 of the sorted lines "HEX MODE NAME", where HEX is that
// of a file's content and MODE x if it may be executed, else -; of a symbolic link HEX is that of
// its target's name, and MODE l.
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
