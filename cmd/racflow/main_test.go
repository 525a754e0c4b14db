package main

import (
	"runtime/debug"
	"slices"
	"testing"
)

// Only the test of a main package is built with the modules that a program knows of itself: racflow version --modules.
func TestModules(t *testing.T) {
	build, _ := debug.ReadBuildInfo()
	for _, path := range []string{"github.com/hashicorp/go-plugin", "github.com/expr-lang/expr"} {
		if !slices.ContainsFunc(build.Deps, func(m *debug.Module) bool { return m.Path == path && m.Version != "" }) {
			t.Errorf("%s is not among the modules", path)
		}
	}
}
