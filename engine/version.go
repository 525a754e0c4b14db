package engine

import (
	"runtime"
	"runtime/debug"
)

// release is the version of the code; a build from a tag says it exactly.
const release = "0.1.0"

const module = "github.com/racflow/racflow"

// Version is the version of racflow, also in a program of another module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return release
}

// Build is what a program was built from, as far as its binary says.
type Build struct {
	Version  string   `json:"version"` // of racflow
	Revision string   `json:"revision,omitempty"`
	Time     string   `json:"time,omitempty"` // of the revision, RFC 3339
	Modified bool     `json:"modified"`       // the working tree had changes beside the revision
	Go       string   `json:"go"`
	Platform string   `json:"platform"`          // "linux/amd64"
	Program  string   `json:"program,omitempty"` // the module of the program, where that is another than racflow
	Modules  []Module `json:"modules,omitempty"`
}

// Module is a module that a program was built with.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// BuildInfo reads it from the running binary.
func BuildInfo() Build {
	b := Build{Version: Version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Path != module {
		b.Program = info.Main.Path
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, Module{m.Path, m.Version, m.Sum})
	}
	return b
}
