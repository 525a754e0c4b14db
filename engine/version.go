package engine

import "runtime/debug"

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
