package attached

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/private"
)

// place is where a sample is kept: path with the endings of its files.
type place struct{ path string }

func (p place) rows() string     { return p.path + ".rows" }
func (p place) about() string    { return p.path + ".json" }
func (p place) compared() string { return p.path + ".compared" }

// nameOf names what is kept of a block and the config of its store.
func nameOf(block *pipeline.Knowledge) string {
	return block.Name + "-" + short(block.Store.Use+string(block.Store.Config.Public))
}

// placeOf is where the sample of a block is kept.
func placeOf(dir string, block *pipeline.Knowledge) place {
	if dir == "" {
		return place{}
	}
	return place{filepath.Join(dir, nameOf(block))}
}

// Kept are the files of the sample that is kept of a block in a folder; none: there is no sample.
func Kept(dir string, block *pipeline.Knowledge) (files []string) {
	p := placeOf(dir, block)
	for _, file := range []string{p.rows(), p.about(), p.compared()} {
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		}
	}
	return files
}

// load returns the sample that is kept; nil: none that can be read.
func (p place) load() *sample {
	s := &sample{}
	if p.path == "" || readJSON(p.about(), s) != nil || s.Layout != layout || s.open(p.rows()) != nil {
		return nil
	}
	return s
}

// keep gives the sample's new file its name.
func (p place) keep(s *sample) error {
	if p.path == "" {
		return os.Remove(s.file.Name()) // it is there as long as it is open
	}
	if err := os.Rename(s.file.Name(), p.rows()); err != nil {
		return err
	}
	return writeJSON(p.about(), s)
}

// unfinished begins the names of files that are being written.
const unfinished = "new-"

// create makes the file of rows of a new sample, and removes those that processes have left that
// were killed.
func (p place) create() (*os.File, error) {
	if p.path == "" {
		return os.CreateTemp("", "racflow-sample-*")
	}
	dir := filepath.Dir(p.path)
	if err := private.MakeBelow(filepath.Dir(dir), dir); err != nil {
		return nil, err
	}
	left, _ := filepath.Glob(filepath.Join(dir, unfinished+"*")) // an error is of the pattern
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(path)
		}
	}
	return os.CreateTemp(dir, unfinished+"*")
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return private.WriteFile(path, text, false)
}
