package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// RecordFile is the file in a model's folder that says where the others came from.
const RecordFile = "racflow.json"

// Record says where a model came from, and what its files were then.
type Record struct {
	Source   string         `json:"source"`             // an address, a folder, or a package with its version
	Revision string         `json:"revision,omitempty"` // that was asked for
	Commit   string         `json:"commit,omitempty"`   // of the repository; "": its server does not say
	Pinned   bool           `json:"pinned"`             // the weights are those of racflow's own list
	Pulled   time.Time      `json:"pulled"`
	Files    []RecordedFile `json:"files"`
}

// RecordedFile is one file as it was pulled.
type RecordedFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	ETag   string `json:"etag,omitempty"` // as the hub declared it
}

// Bytes is how much the files have together.
func (r *Record) Bytes() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

// maxRecord is how many bytes a record may have.
const maxRecord = 1 << 20

// ReadRecord reads the record of a model's folder. The error is fs.ErrNotExist where there is
// none: the files were put there by hand, or by a racflow that kept no records.
func ReadRecord(dir string) (*Record, error) {
	raw, err := readBounded(filepath.Join(dir, RecordFile), maxRecord)
	if err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, RecordFile), err)
	}
	for _, f := range r.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("%s names %q, which is outside of the folder", filepath.Join(dir, RecordFile), f.Path)
		}
	}
	return &r, nil
}

func (r *Record) write(dir string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, RecordFile), append(raw, '\n'), 0o644) // #nosec G306 -- no secrets
}

// putByHand are the files that a model without a record has at least.
func putByHand(dir string) []File {
	root, _, _ := readModules(dir) // what is wrong there, the stage says
	files := []File{{Path: path.Join(root, configFile)}}
	if _, err := os.Stat(filepath.Join(dir, root, weightsFile)); err != nil {
		if shards, err := readIndex(filepath.Join(dir, root, indexFile)); err == nil {
			for _, shard := range shards {
				files = append(files, File{Path: path.Join(root, shard)})
			}
			return files
		}
	}
	return append(files, File{Path: path.Join(root, weightsFile)})
}

// readBounded reads a file that has at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return raw, err
}

// Verified is what a comparison of a model's files came to.
type Verified struct {
	Files    int      // that were compared
	Problems []string // what is wrong; none: all is as it was pulled
}

// Verify reads all files of a model on this machine, and compares them with its record, or with
// racflow's own list where it has none.
func Verify(name string) (Verified, error) {
	s, err := StatusOf(name)
	if err != nil {
		return Verified{}, err
	}
	if !s.Installed && s.Record == nil {
		return Verified{}, fmt.Errorf("%s is not on this machine: racflow model pull %s", name, name)
	}
	var expected []RecordedFile
	if s.Record != nil {
		expected = s.Record.Files
	} else if m, err := Find(name); err == nil {
		for _, f := range m.Files {
			if f.SHA256 != "" {
				expected = append(expected, RecordedFile{Path: f.Path, SHA256: f.SHA256, Size: -1})
			}
		}
	}
	v := Verified{Files: len(expected)}
	if len(expected) == 0 {
		v.Problems = append(v.Problems, "there is no record to compare with: racflow model pull makes one")
	}
	for _, f := range expected {
		sum, err := program.HashFile(filepath.Join(s.Dir, filepath.FromSlash(f.Path)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.Problems = append(v.Problems, f.Path+" is missing")
		case err != nil:
			v.Problems = append(v.Problems, err.Error())
		case sum != f.SHA256:
			v.Problems = append(v.Problems, fmt.Sprintf("%s has the sha256 %s, not %s", f.Path, sum, f.SHA256))
		}
	}
	return v, nil
}

// Status says what this machine has of a model.
type Status struct {
	Dir       string
	Installed bool // all files are there; Verify says whether they are what was pulled
	Bytes     int64
	Record    *Record // nil: there is none
}

// Status looks for the model's files.
func (m Model) Status() (Status, error) { return StatusOf(m.Name) }

// StatusOf looks for the files of the model of that name.
func StatusOf(name string) (Status, error) {
	dir, err := sdk.ModelDir(name)
	if err != nil {
		return Status{}, err
	}
	s := Status{Dir: dir, Installed: true}
	var files []File
	switch s.Record, err = ReadRecord(dir); {
	case err == nil:
		for _, f := range s.Record.Files {
			files = append(files, File{Path: f.Path})
		}
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	default:
		files = putByHand(dir)
		if m, err := Find(name); err == nil && m.Listed {
			files = m.Files
		}
	}
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		switch {
		case err == nil:
			s.Bytes += info.Size()
		case !f.Optional:
			s.Installed = false
		}
	}
	return s, nil
}
