package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/racflow/racflow/engine/private"
)

const (
	// Most is how many files a run has at most.
	Most = 20
	// largest is how many bytes a file has at most: of a larger request there is none.
	largest = 1 << 20
)

// Files writes files into the folder of a run. Those that come before there is one, as
// knowledge is built, are held until then. It may be used by several goroutines at once.
type Files struct {
	mu   sync.Mutex
	dir  string // empty: not known yet
	held []named
	made int
}

type named struct {
	stage   string
	content []byte
}

// Into names the folder, which is made once there is a file for it. It returns an error where those
// that were held could not be written.
func (f *Files) Into(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, _ := filepath.Glob(filepath.Join(dir, "*.json")) // of a run that is resumed
	f.dir, f.made = dir, len(before)
	held := f.held
	f.held = nil
	for _, one := range held {
		if _, err := f.write(one); err != nil {
			return err
		}
	}
	return nil
}

// Full reports whether there is room for no other file.
func (f *Files) Full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made+len(f.held) >= Most
}

// Add writes a file for a stage, as "sample.mine", and returns its path; empty: it is not
// written, or not yet.
func (f *Files) Add(stage string, file File) (path string, err error) {
	raw, err := json.MarshalIndent(file, "", "  ")
	if err != nil || len(raw) > largest {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := named{stage, append(raw, '\n')}
	switch {
	case f.made+len(f.held) >= Most:
		return "", nil
	case f.dir == "":
		f.held = append(f.held, one)
		return "", nil
	}
	return f.write(one)
}

// write writes one under the next free name of its stage.
func (f *Files) write(one named) (path string, err error) {
	if f.made >= Most {
		return "", nil
	}
	if err := private.MakeFolder(f.dir); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		path = filepath.Join(f.dir, fmt.Sprintf("%s-%d.json", one.stage, n))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		f.made++
		return path, private.WriteFile(path, one.content, false)
	}
}
