package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk/python"
)

// Environment is the folder of a Python plugin's virtual environment, in the plugin's folder.
// Below it, Wheels holds the package racflow-plugin as it was installed.
const (
	Environment = ".venv"
	Wheels      = "racflow-plugin"
)

// prepare makes a project in Python ready to start and returns the path of the plugin's folder.
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
	// The wheel is named by its path: no index may have another package of its name in its place.
	install := []string{filepath.Join(environment, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", wheels}
	if runtime.GOOS == "windows" {
		install[0] = filepath.Join(environment, "Scripts", "python.exe")
	}
	if requirements != nil {
		install = append(install, "-r", "requirements.txt")
	}
	if said, err := run(ctx, dir, log, nil, install...); err != nil {
		return "", ended("install the plugin's packages", said, err,
			"Look at the network, at requirements.txt, and at what `pip config list` says of the index.")
	}
	return folder, os.WriteFile(stamp, []byte(want), 0o644)
}

// stampOf says what an environment was made of and with.
func stampOf(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pluginFolder finds the one folder of a project that holds a plugin's program.
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

// findPython finds the interpreter that PATH leads to, but for that of the environment, which whoever
// has activated it has in PATH, too.
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
