package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
)

// TestPublish reports errors in a folder of programs, and changes no release.
func TestPublish(t *testing.T) {
	here := runtime.GOOS + "_" + runtime.GOARCH
	target := "oci:" + filepath.Join(t.TempDir(), "layout")
	for _, c := range []struct {
		name, content string // of the program for this machine
		files         []string
		says, version string
		want          string
	}{
		{"a release", "1", []string{here + "/racflow-plugin-mine", "plan9_mips/racflow-plugin-mine", "README.md"}, "mine", "1.0.0", ""},
		{"the same again", "1", []string{here + "/racflow-plugin-mine", "plan9_mips/racflow-plugin-mine"}, "mine", "1.0.0", ""},
		{"another with its version", "2", []string{here + "/racflow-plugin-mine"}, "mine", "1.0.0", "has a version 1.0.0 already"},
		{"for all machines", "1", []string{"any_any/racflow-plugin-mine"}, "mine", "1.1.0", ""},
		{"nothing", "", nil, "mine", "1.0.0", "holds no built program: put them where their platform says"},
		{"not for this machine", "", []string{"plan9_mips/racflow-plugin-mine"}, "mine", "1.0.0", "none of the programs runs on this machine"},
		{"two plugins", "", []string{here + "/racflow-plugin-mine", "plan9_mips/racflow-plugin-yours"}, "mine", "1.0.0", `of the plugins "mine" and "yours"`},
		{"two programs", "", []string{here + "/racflow-plugin-mine", here + "/racflow-plugin-yours"}, "mine", "1.0.0", "holds 2 programs"},
		{"another name", "", []string{here + "/racflow-plugin-mine"}, "yours", "1.0.0", "give both one name"},
		{"no version", "", []string{here + "/racflow-plugin-mine"}, "mine", "v1", "a release needs one such as 1.2.3"},
		{"build metadata", "", []string{here + "/racflow-plugin-mine"}, "mine", "1.0.0+build", "without +"},
		{"it does not start", "", []string{here + "/racflow-plugin-mine"}, "", "", "it did not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dist := t.TempDir()
			for _, name := range c.files {
				path := filepath.Join(dist, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("#!/bin/sh\n# "+c.content), 0o700); err != nil { //nolint:gosec // it is a program
					t.Fatal(err)
				}
			}
			ctx := context.Background()
			r, err := Publish(ctx, dist, mustPublish(Parse(target, "")), nil, func(_ context.Context, p program.Program) (sdk.Plugin, error) {
				if c.says == "" {
					return sdk.Plugin{}, errors.New("it did not answer")
				}
				return sdk.Plugin{Name: c.says, Version: c.version}, nil
			})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			repo := mustPublish(Open(ctx, mustPublish(Parse(target, ""))))
			if got := mustPublish(repo.tagged(ctx, c.version)); got != r.Digest || r.Name != "mine" || r.Version != c.version {
				t.Errorf("published %+v, and the tag leads to %s", r, got)
			}
		})
	}
}

func mustPublish[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
