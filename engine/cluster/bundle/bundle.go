package bundle

import (
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
)

// Bundle is what a worker needs to open the pipeline file of a run. Paths are those of the caller's
// machine, absolute where nothing else is said.
type Bundle struct {
	File             string              `json:"file"`          // the pipeline file, one of Files
	Dir              string              `json:"dir,omitempty"` // that relative paths in VarFiles, Vars and Input begin at
	Files            []File              `json:"files"`
	Pipeline         string              `json:"pipeline"`
	Input            string              `json:"input,omitempty"`   // in place of the file's, as it was given
	Columns          map[string]string   `json:"columns,omitempty"` // of the input
	KnowledgeColumns map[string]string   `json:"knowledgeColumns,omitempty"`
	Set              []pipeline.Override `json:"set,omitempty"`
	Vars             map[string]string   `json:"vars,omitempty"`
	VarFiles         []string            `json:"varFiles,omitempty"` // as they were given; among Files; later ones win

	Environment []Environment `json:"environment,omitempty"` // what the file reads of it
	Models      []Model       `json:"models,omitempty"`
	Plugins     []Plugin      `json:"plugins,omitempty"`
	Stores      []string      `json:"stores,omitempty"`  // folders that stores keep collections in; a worker's lie below its state folder
	Sources     []Source      `json:"sources,omitempty"` // of knowledge, to know what they are
	Stays       []Stay        `json:"stays,omitempty"`
}

// File is one that the pipeline file reads, or that file itself.
type File struct {
	Path    string `json:"path"`
	Digest  string `json:"digest"` // SHA-256 of the content, hexadecimal
	Size    int64  `json:"size"`
	Content []byte `json:"content,omitempty"` // of a small one; else it is an object at the servers, called by its digest
}

// large reports whether the content is not in the bundle.
func (f File) large() bool { return f.Content == nil && f.Size > 0 }

// Environment is a variable of the environment that the pipeline file reads. Its value stays where it is.
type Environment struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret,omitempty"` // read with secret(), or in place of a variable of the file that holds a secret
	Set    bool   `json:"set,omitempty"`    // the caller has it, and so has a worker; else the file has a default, or can do without
}

// Model is a folder that an argument names: it is found by what is in it.
type Model struct {
	Path   string `json:"path,omitempty"` // as the argument has it; empty: the stage looks for the name itself
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the names and contents of its files
	Size   int64  `json:"size"`   // of all of them together, in bytes
}

// Plugin is a program of a third party.
type Plugin struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Hash        string `json:"hash"`                  // on the caller's machine
	Development bool   `json:"development,omitempty"` // it is not locked
}

// Source is one of knowledge that is not a glob.
type Source struct {
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
}

// Stay is a file or folder that does not travel: workers have it at the same path.
type Stay struct {
	Path string `json:"path"`
	Why  string `json:"why"` // a clause, such as "it holds a secret"
}

// LacksError says what a machine lacks to take part in a run.
type LacksError struct {
	Lacks []string // a sentence each, that says what to do
}

func (e *LacksError) Error() string {
	return "this machine lacks what the run needs: " + strings.Join(e.Lacks, "; ")
}

// Digests are those of the files that are objects at the servers.
func (b Bundle) Digests() (all []string) {
	for _, f := range b.Files {
		if f.large() {
			all = append(all, f.Digest)
		}
	}
	return all
}
