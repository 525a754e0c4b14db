package plugin

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"
)

const written = `# Written by racflow plugin init. Commit it together with the pipeline file.

plugin "a" {
  source     = "./${x}"
  version    = ""
  constraint = ""
  protocol   = 2
  digest     = ""
  signer     = ""
  programs   = {}
}

plugin "b" {
  source     = "ghcr.io/acme/racflow-plugin-b"
  version    = "1.2.3"
  constraint = "~> 1.2"
  protocol   = 2
  digest     = "sha256:ab"
  signer     = "minisign:RWQ"
  programs = {
    "any/any"     = "tree:cd"
    "linux/amd64" = "sha256:ef"
  }
}
`

// A written lock is read again. It is in one order, whatever the order before. Writing the same
// content again does not change the file.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), LockName)
	b := LockedPlugin{
		Name: "b", Source: "ghcr.io/acme/racflow-plugin-b", Version: "1.2.3", Constraint: "~> 1.2", Protocol: 2, Digest: "sha256:ab", Signer: "minisign:RWQ",
		Programs: map[string]string{"linux/amd64": "sha256:ef", "any/any": "tree:cd"},
	}
	a := LockedPlugin{Name: "a", Source: "./${x}", Protocol: 2}
	var before os.FileInfo
	for _, f := range []*Lock{{[]LockedPlugin{b, a}}, {[]LockedPlugin{a, b}}} {
		if err := f.Write(path); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if diff := cmp.Diff(strings.ReplaceAll(written, "./${x}", "./$${x}"), string(raw)); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		info, err := os.Stat(path)
		if err != nil || before != nil && (!os.SameFile(before, info) || !before.ModTime().Equal(info.ModTime())) {
			t.Errorf("the same was written anew: %v", err)
		}
		before = info
	}
	got, diags := ReadLock(path)
	if diff := cmp.Diff(&Lock{[]LockedPlugin{a, b}}, got, cmpopts.IgnoreTypes(hcl.Range{}), cmpopts.EquateEmpty()); diff != "" || diags.HasErrors() {
		t.Errorf("%v (-want +got):\n%s", diags, diff)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRead(t *testing.T) {
	const whole = "source = \"s\"\n protocol = 2\n programs = {}\n"
	for content, want := range map[string]string{
		"":                               "",
		"plugin \"a\" {\n" + whole + "}": "",
		"plugin \"a\" {\n" + whole + "}\nplugin \"a\" {\n" + whole + "}": "is locked on line 1 already",
		"plugin {}":                       "Missing name for plugin",
		"plugin \"a\" { source = \"s\" }": "Missing required argument",
		"plugin \"a\" {\nsource = upper(\"s\")\n protocol = 2\n programs = {}\n}": "Functions may not be called here",
		"plugin \"a\" {\nsource = \"s\"\n protocol = 2.5\n programs = {}\n}":      "value must be a whole number",
		"plugin \"a\" {\nsource = \"s\"\n protocol = 2\n programs = [1]\n}":       "map of string required",
		"other = 1": "Unsupported argument",
		"{":         "Argument or block definition required",
	} {
		path := filepath.Join(t.TempDir(), LockName)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, diags := ReadLock(path)
		text := ""
		for _, d := range diags {
			text += d.Summary + ": " + d.Detail + "\n"
		}
		if f == nil || want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("%s:\n%s\nwant %q", content, text, want)
		}
	}
	if f, diags := ReadLock(filepath.Join(t.TempDir(), "none")); diags.HasErrors() || len(f.Plugins) > 0 {
		t.Errorf("none: %v, %v", f, diags)
	}
	if _, diags := ReadLock(t.TempDir()); !diags.HasErrors() {
		t.Error("a folder was read")
	}
}

func TestProgram(t *testing.T) {
	here := runtime.GOOS + "/" + runtime.GOARCH
	for want, programs := range map[string]map[string]string{
		"":  {"plan9/386": "x"},
		"a": {here: "a", AnyPlatform: "b"},
		"b": {"plan9/386": "x", AnyPlatform: "b"},
	} {
		if got := (&LockedPlugin{Programs: programs}).Program(); got != want {
			t.Errorf("%v: %q", programs, got)
		}
	}
}
