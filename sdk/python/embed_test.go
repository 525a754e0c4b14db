package python

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWheel: the wheel has the same bytes each time, and all files of a package.
func TestWheel(t *testing.T) {
	name, content, err := Wheel()
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := Wheel(); err != nil || !bytes.Equal(content, again) {
		t.Errorf("made twice, it differs (%v)", err)
	}
	if want := "racflow_plugin-" + Version + "-py3-none-any.whl"; name != want {
		t.Errorf("it is called %s, want %s", name, want)
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, f := range archive.File {
		has[f.Name] = true
		if !f.Modified.IsZero() && f.Modified.Year() > 1980 {
			t.Errorf("%s has the time %v", f.Name, f.Modified)
		}
	}
	modules, err := os.ReadDir("racflow_plugin")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules {
		if !m.IsDir() && !has["racflow_plugin/"+m.Name()] {
			t.Errorf("%s is missing", m.Name())
		}
	}
}

// TestInstall: pip installs the wheel into a new environment, and the installed files are checked
// against the wheel's list.
func TestInstall(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", filepath.Join(dir, "venv")).CombinedOutput(); err != nil {
		t.Skipf("python3 makes no environments: %s", out)
	}
	name, content, err := Wheel()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "venv", "bin", "python")
	if out, err := exec.Command(python, "-m", "pip", "--python", own, "--version").CombinedOutput(); err != nil {
		t.Skipf("python3 has no pip, or an old one: %s", out)
	}
	run(python, "-m", "pip", "--python", own, "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", filepath.Join(dir, name))
	shown := run(own, "-c", `
import importlib.metadata as m
d = m.distribution("racflow-plugin")
print(d.version, [f.name for f in d.files if f.hash and f.hash.value != __import__("base64").urlsafe_b64encode(__import__("hashlib").sha256(f.read_binary()).digest()).rstrip(b"=").decode()])
print(sorted(d.requires))
print((d.read_text("METADATA") or "").splitlines()[-1])`)
	for _, want := range []string{Version + " []\n", "cryptography", "grpcio", "protobuf", "extra == \"numpy\""} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
}
