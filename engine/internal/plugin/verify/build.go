package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk/python"
)

// This file builds the program of an author's project. It compiles a Go project with the go command. It
// gives a Python project a virtual environment with the required packages; racflow-plugin among them is
// embedded in racflow. It writes only inside the project, except the go command's own caches.
//
// It starts no plugin and checks none: packages host and verify do. It downloads nothing itself; go
// and pip do, from their configured sources.

// BuildProject builds the project in a folder and returns its program, which is named racflow-plugin-NAME
// and is in that folder. It logs slow steps and compilers' output to log.
//
// A Go project has a go.mod whose module ends with racflow-plugin-NAME. A Python project has a folder
// racflow-plugin-NAME with a program of that name.
func BuildProject(ctx context.Context, dir string, log io.Writer) (program.Program, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return program.Program{}, err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	var path string
	switch {
	case err == nil:
		path, err = compile(ctx, dir, mod, log)
	case errors.Is(err, os.ErrNotExist):
		path, err = prepare(ctx, dir, log)
	}
	if err != nil {
		return program.Program{}, err
	}
	p, err := program.At(path)
	p.Project = dir
	return p, err
}

// run runs a command in a folder and returns its standard output and standard error.
func run(ctx context.Context, dir string, log io.Writer, environment []string, command ...string) (string, error) {
	fmt.Fprintf(log, "%s\n", strings.Join(append([]string{filepath.Base(command[0])}, command[1:]...), " "))
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), environment...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	err := c.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return said.String(), err
}

// ended returns the error of a failed command: its output, and advice.
func ended(what, said string, err error, advice string) error {
	said = strings.TrimSpace(said)
	if most := 4000; len(said) > most {
		said = "...\n" + strings.ToValidUTF8(said[len(said)-most:], "")
	}
	if advice != "" {
		advice = "\n" + advice
	}
	return fmt.Errorf("%s: %w\n%s%s", what, err, said, advice)
}

// compile builds a Go project and returns the program's path.
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
	environment := []string{"GOWORK=off"} // a separate module, even inside a workspace
	sums := filepath.Join(dir, "go.sum")
	if _, err := os.Stat(sums); errors.Is(err, os.ErrNotExist) {
		// Like go build, but also for the tests.
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

// programOf returns the program's name, the last element of the module's path.
func programOf(mod []byte) (string, error) {
	module := modfile.ModulePath(mod)
	if module == ownModule {
		return "", errors.New("this is racflow itself, and no plugin: racflow plugin new KIND NAME --sdk PATH, with the path of this checkout, writes a plugin " +
			"that is built against it; racflow plugin verify builtin:KIND/NAME checks a stage of racflow's own")
	}
	name := path.Base(module)
	if version := regexp.MustCompile(`^v\d+$`); version.MatchString(name) {
		name = path.Base(path.Dir(module))
	}
	if rest, ok := strings.CutPrefix(name, program.Prefix); !ok || rest == "" {
		return "", fmt.Errorf("the module is %q, so the name of the plugin is not known: let its path end with %sNAME", module, program.Prefix)
	}
	return name, nil
}

// checkout says how a project gets racflow's module if no proxy has the module.
const checkout = " With a checkout of racflow in FOLDER: go mod edit -replace " + ownModule + "=FOLDER; " +
	"racflow plugin new --sdk FOLDER writes a new project like that."

// ownModule is the path of racflow's module, which contains the SDK.
const ownModule = "github.com/racflow/racflow"

// missing matches the go command's output if the command cannot get racflow's module.
var missing = regexp.MustCompile(`racflow/racflow@.*(unknown revision|not found|no matching versions|invalid version|410 Gone|40[34] |no such file)` +
	`|(racflow/racflow@|downloading github.com/racflow/racflow v\S+\n[^@\n]*).*` + // a line may name no module
	`(module lookup disabled|dial tcp|no such host|i/o timeout|connection refused|proxyconnect|TLS handshake)`)

// adviceFor returns advice about the output of the go command, which explains most errors itself.
func adviceFor(said string) string {
	if !missing.MatchString(said) {
		return ""
	}
	return "The version of racflow's module that go.mod names could not be had from where `go env GOPROXY` says." + checkout
}

// Environment is the folder of a Python plugin's virtual environment, in the plugin's folder. Its
// subfolder Wheels keeps the installed package racflow-plugin.
const (
	Environment = ".venv"
	Wheels      = "racflow-plugin"
)

// prepare makes a Python project ready to start and returns the path of the plugin's folder.
func prepare(ctx context.Context, dir string, log io.Writer) (string, error) {
	folder, err := pluginFolder(dir)
	if err != nil {
		return "", err
	}
	name, wheel, err := python.Wheel()
	if err != nil {
		return "", err
	}
	requirements, err := os.ReadFile(filepath.Join(dir, "requirements.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	environment := filepath.Join(folder, Environment)
	interpreter, err := findPython(environment)
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(environment, "racflow.stamp")
	want := stampOf([]byte(environment), []byte(interpreter), requirements, wheel)
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return folder, nil
	}
	if err := os.RemoveAll(environment); err != nil {
		return "", err
	}
	if said, err := run(ctx, dir, log, nil, interpreter, "-m", "venv", environment); err != nil {
		return "", ended("make a virtual environment", said, err,
			"The module venv of Python is needed; Debian and Ubuntu have it in the package python3-venv.")
	}
	wheels := filepath.Join(environment, Wheels)
	if err := os.MkdirAll(wheels, 0o755); err != nil {
		return "", err
	}
	wheels = filepath.Join(wheels, name)
	if err := os.WriteFile(wheels, wheel, 0o644); err != nil {
		return "", err
	}
	// The path names the wheel, so that no index can replace the wheel by another package of the same
	// name.
	install := []string{filepath.Join(environment, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", wheels}
	if requirements != nil {
		install = append(install, "-r", "requirements.txt")
	}
	if said, err := run(ctx, dir, log, nil, install...); err != nil {
		return "", ended("install the plugin's packages", said, err,
			"Look at the network, at requirements.txt, and at what `pip config list` says of the index.")
	}
	return folder, os.WriteFile(stamp, []byte(want), 0o644)
}

// stampOf identifies the inputs of an environment.
func stampOf(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pluginFolder finds the one folder of a project that contains a plugin's program.
func pluginFolder(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, program.Prefix+"*", program.Prefix+"*"))
	if err != nil {
		return "", err
	}
	var folders []string
	for _, path := range paths {
		if folder := filepath.Dir(path); filepath.Base(folder) == filepath.Base(path) {
			folders = append(folders, folder)
		}
	}
	switch len(folders) {
	case 1:
		return folders[0], nil
	case 0:
		return "", fmt.Errorf("%s is not the folder of a plugin's project: it has neither a go.mod nor a folder %sNAME with a program of that name; "+
			"begin one with racflow plugin new", dir, program.Prefix)
	}
	return "", fmt.Errorf("%s has several plugins: give each a project of its own", dir)
}

// findPython finds the interpreter in PATH. It skips the environment's own interpreter, which is also in
// PATH if a person has activated the environment.
func findPython(environment string) (string, error) {
	for _, name := range []string{"python3", "python"} {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if filepath.Dir(filepath.Clean(dir)) == environment || !filepath.IsAbs(dir) {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", errors.New("this plugin is written in Python, and there is no program python3 on this machine: " +
		"install Python 3 from https://www.python.org/downloads, and put the folder of its programs into PATH")
}
