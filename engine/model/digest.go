package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/program"
)

// maxFiles is how many files a model's folder may have.
const maxFiles = 10_000

// Digest identifies the model in a folder by its weights, wherever it came from and whatever the
// folder is called: hubs and packages give them other files beside. Of a folder without weights, all files
// count. Contents that a record has (RecordFile) are taken from there, where the sizes are as
// recorded.
func Digest(dir string) (string, error) {
	files, err := counting(dir)
	if err != nil {
		return "", err
	}
	recorded := map[string]RecordedFile{}
	if r, err := ReadRecord(dir); err == nil {
		for _, f := range r.Files {
			recorded[f.Path] = f
		}
	}
	var lines []string
	for name, size := range files {
		sum := recorded[name].SHA256
		if sum == "" || recorded[name].Size != size {
			if sum, err = program.HashFile(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				return "", err
			}
		}
		lines = append(lines, sum+" "+name+"\n")
	}
	slices.Sort(lines)
	hash := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(hash[:]), nil
}

// Size is that of the files together whose contents are in the digest, in bytes.
func Size(dir string) (size int64, err error) {
	files, err := counting(dir)
	for _, n := range files {
		size += n
	}
	return size, err
}

// counting returns the sizes of the files that count, by their names below the folder.
func counting(dir string) (map[string]int64, error) {
	weights, all := map[string]int64{}, map[string]int64{}
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, e fs.DirEntry, err error) error { // the separator makes a link its target
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), ".") || e.IsDir() || name == RecordFile:
			return nil
		case len(all) >= maxFiles:
			return fmt.Errorf("%s has more than %d files: name the folder of a model", dir, maxFiles)
		}
		info, err := os.Stat(path) // a hub's cache has links
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		name = filepath.ToSlash(name)
		if all[name] = info.Size(); filepath.Ext(name) == filepath.Ext(weightsFile) {
			weights[name] = info.Size()
		}
		return nil
	})
	if len(weights) > 0 {
		return weights, err
	}
	return all, err
}
