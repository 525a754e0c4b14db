package model

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// Record holds the origin of a model, and the files that it had.
type Record struct {
	Source   string         `json:"source"`             // an address, a folder, or a package with its version
	Revision string         `json:"revision,omitempty"` // as requested
	Commit   string         `json:"commit,omitempty"`   // of the repository; "": unknown
	Pinned   bool           `json:"pinned"`             // the weights have the hashes of racflow's list
	Pulled   time.Time      `json:"pulled"`
	Files    []RecordedFile `json:"files"`
}

// architectures are the model types that the stages encoder and cross_encoder read.
var architectures = []string{"bert", "distilbert", "roberta", "xlm-roberta", "mpnet", "modernbert"}

// readable returns why no stage can read a model. It is called before the weights are fetched.
func readable(dir string) error {
	var settings struct {
		Type string `json:"model_type"`
	}
	raw, err := readBounded(filepath.Join(dir, configFile), maxSettings)
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	if !slices.Contains(architectures, settings.Type) {
		return fmt.Errorf("its %s has the model_type %.100q, which no stage reads: they read %s", configFile, settings.Type, strings.Join(architectures, ", "))
	}
	return nil
}

// escapeGlob escapes a folder's name for use in a glob.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// maxHeader is the most bytes of a safetensors header, as in the safetensors library.
const maxHeader = 100_000_000

// checkWeights returns why a file is not a complete safetensors file, such as a proxy's page or half
// a file.
func checkWeights(path string) error {
	invalid := func(why string) error {
		return fmt.Errorf("%s is no file of safetensors: %s", filepath.Base(path), why)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return invalid("it has less than 8 bytes")
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n > maxHeader || int64(n) > info.Size()-8 {
		return invalid("its header does not fit into it")
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(f, header); err != nil {
		return err
	}
	var tensors map[string]struct {
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(header, &tensors); err != nil {
		return invalid("its header is no JSON object of tensors")
	}
	var data int64
	for _, t := range tensors { // the metadata have no offsets
		data = max(data, t.Offsets[1])
	}
	if got := info.Size() - 8 - int64(n); data != got {
		return invalid(fmt.Sprintf("it has %d bytes of tensors, its header says %d", got, data))
	}
	return nil
}

// RecordFile is the file in a model's folder that holds its Record.
const RecordFile = "racflow.json"

// RecordedFile describes a file as it was pulled.
type RecordedFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the total size of the files.
func (r *Record) Bytes() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

// maxRecord is the most bytes of a record.
const maxRecord = 1 << 20

// readRecord reads the record of a model's folder. The error is fs.ErrNotExist if there is none. Then
// a person put the files there, or a version of racflow that wrote no records.
func readRecord(dir string) (*Record, error) {
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

// putByHand returns the files that a model without a record must have at least.
func putByHand(dir string) []File {
	root, _, _ := readModules(dir) // the stage reports any error
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

// readBounded reads a file of at most limit bytes.
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

// Verified is the outcome of Verify.
type Verified struct {
	Files    int      // number of files compared
	Problems []string // what is wrong; none: all files are as pulled
}

// Verify reads all files of a model on this machine. It compares them with the model's record or,
// without a record, with racflow's own list.
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

// Status describes a model on this machine.
type Status struct {
	Dir       string
	Installed bool // all files exist; Verify checks their content
	Bytes     int64
	Record    *Record // nil: there is none
}

// StatusOf looks for the files of the model of that name.
func StatusOf(name string) (Status, error) {
	dir, err := sdk.ModelDir(name)
	if err != nil {
		return Status{}, err
	}
	s := Status{Dir: dir, Installed: true}
	var files []File
	switch s.Record, err = readRecord(dir); {
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
