package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/racflow/racflow/engine/program"
)

// compile builds a project in Go and returns the program's path.
func compile(ctx context.Context, dir string, mod []byte, log io.Writer) (string, error) {
	name, err := programOf(mod)
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Join(dir, "go.mod"), err)
	}
	command, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("this plugin is written in Go, and there is no go command on this machine: " +
			"install Go from https://go.dev/dl, and put the folder of its programs into PATH")
	}
	environment := []string{"GOWORK=off"} // it is a module of its own, wherever it lies
	sums := filepath.Join(dir, "go.sum")
	if _, err := os.Stat(sums); errors.Is(err, os.ErrNotExist) {
		// As go build does, and for the tests as well.
		said, err := run(ctx, dir, log, environment, command, "list", "-mod=mod", "-deps", "-test", "-f", "{{/* nothing */}}", "./...")
		if err != nil {
			return "", ended("get the modules of the plugin", said, err, adviceFor(said))
		}
	}
	said, err := run(ctx, dir, log, environment, command, "build", "-mod=mod", "-trimpath", "-o", name, ".")
	if err != nil {
		return "", ended("build the plugin", said, err, adviceFor(said))
	}
	return filepath.Join(dir, name), nil
}

// programOf is the program's name, the last element of the module's path.
func programOf(mod []byte) (string, error) {
	module := modfile.ModulePath(mod)
	name := path.Base(module)
	if version := regexp.MustCompile(`^v\d+$`); version.MatchString(name) {
		name = path.Base(path.Dir(module))
	}
	if rest, ok := strings.CutPrefix(name, program.Prefix); !ok || rest == "" {
		return "", fmt.Errorf("the module is %q, so the name of the plugin is not known: let its path end with %sNAME", module, program.Prefix)
	}
	return name, nil
}

// adviceFor says what to do about what the go command says.
func adviceFor(said string) string {
	for _, about := range []struct{ sign, advice string }{
		{`requires go >= |toolchain not available|invalid go version`,
			"The plugin needs a newer Go: install it from https://go.dev/dl, or let the go command get it with GOTOOLCHAIN=auto."},
		{`racflow/racflow@.*(unknown revision|not found|no matching versions|invalid version|410 Gone|40[34] |no such file)`,
			"There is no such version of racflow's module where GOPROXY looks. Take another with: go get github.com/racflow/racflow@latest; " +
				"or a checkout: go mod edit -replace github.com/racflow/racflow=FOLDER"},
		{`module lookup disabled|dial tcp|no such host|i/o timeout|connection refused|proxyconnect|TLS handshake`,
			"A module could not be fetched: look at the network, and at what `go env GOPROXY` names."},
		{`checksum mismatch|missing go.sum entry`,
			"go.sum does not fit go.mod: remove go.sum if you changed go.mod, and do this again."},
	} {
		if regexp.MustCompile(about.sign).MatchString(said) {
			return about.advice
		}
	}
	return ""
}
