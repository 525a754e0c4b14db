package bundle

import "github.com/racflow/racflow/engine/pipeline"

// Bundle is what a worker needs to open the pipeline file of a run.
type Bundle struct {
	File     string              `json:"file"`          // the pipeline file, one of Files
	Dir      string              `json:"dir,omitempty"` // that relative paths in variables begin at; below the root of Files
	Files    []File              `json:"files"`
	Pipeline string              `json:"pipeline"`
	Columns  map[string]string   `json:"columns,omitempty"`
	Set      []pipeline.Override `json:"set,omitempty"`
	Vars     map[string]string   `json:"vars,omitempty"`
	VarFiles []string            `json:"varFiles,omitempty"` // among Files; later ones win

	Environment []Environment `json:"environment,omitempty"` // what the file reads of it
	Models      []Model       `json:"models,omitempty"`
	Plugins     []Plugin      `json:"plugins,omitempty"`
}

// File is one that the pipeline file reads, or that file itself.
type File struct {
	Path    string `json:"path"`   // below the root that all have in common, with slashes
	Digest  string `json:"digest"` // SHA-256 of the content, hexadecimal
	Size    int64  `json:"size"`
	Content []byte `json:"content,omitempty"` // of a small one; else it is an object at the servers, called by its digest
	From    string `json:"from,omitempty"`    // the path that the pipeline file has for it, where that is absolute
}

// Environment is a variable of the environment that the pipeline file reads. Its value stays where it is.
type Environment struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret,omitempty"` // read with secret(), or a variable of the file that is one
	Set    bool   `json:"set,omitempty"`    // the caller has it; else the file has a default
}

// Model is a folder that an argument names: it is found by what is in it.
type Model struct {
	Path   string `json:"path"`           // as the pipeline file has it: below the root of Files, or absolute
	Name   string `json:"name,omitempty"` // by which racflow model pull brings it; empty: nobody knows
	Digest string `json:"digest"`         // of the names and contents of its files
}

// Plugin is a program of a third party.
type Plugin struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"` // empty: it is being developed
	Hash    string `json:"hash"`
}
