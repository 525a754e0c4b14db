package require

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/process/program"
)

// The requirements of a file are read without the rest of the file, which may be wrong.
func TestRequirements(t *testing.T) {
	got, diags := All("/files/p.hcl", []byte(`
required_plugins {
  mine = {
    source   = "ghcr.io/acme/racflow-plugin-mine"
    version  = "~> 1.2"
    network  = ["api.example.com:443", "*.example.com:443", "[::1]:80"]
    read     = ["models/", "/data"]
    write    = ["out"]
    disk     = "4GiB"
    confined = false
  }
  dev    = { network = [], confined = true }
  packed = { "source" = "https://example.com/x.tar.gz", sha256 = { "linux/amd64" = "ab" } }
}
pipeline "p" {
  retrieve "x" { from = nothing.of.this }
}
`))
	want := []Plugin{
		{Name: "mine", Source: "ghcr.io/acme/racflow-plugin-mine", Version: "~> 1.2", Allow: program.Allow{
			Hosts: []string{"api.example.com:443", "*.example.com:443", "[::1]:80"}, Read: []string{"/files/models", "/data"}, Write: []string{"/files/out"}, Disk: 4 << 30, Unconfined: true,
		}},
		{Name: "dev"},
		{Name: "packed", Source: "https://example.com/x.tar.gz", SHA256: map[string]string{"linux/amd64": "ab"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(hcl.Range{}), cmpopts.EquateEmpty()); diff != "" || diags.HasErrors() {
		t.Errorf("%v (-want +got):\n%s", diags, diff)
	}
	if len(got) == 3 && (got[0].SourceRange.Start.Line != 4 || got[0].VersionRange.Start.Line != 5 || got[0].Range.Start.Line != 3 || got[1].SourceRange != got[1].Range) {
		t.Errorf("places: %+v", got)
	}
}

// An error is a diagnostic at its place, with advice; the file's expressions are not evaluated.
func TestMistakes(t *testing.T) {
	for entry, want := range map[string]string{
		`m = "x"`:                                          "1:25 A static map expression is required",
		`m = { source = var.x }`:                           "1:35 Variables may not be used here",
		`m = { source = upper("x") }`:                      "1:35 Functions may not be called here",
		`m = { source = "" }`:                              "1:35 The source is empty",
		`m = { sorce = "x/y" }`:                            "1:26 An entry of required_plugins has no argument \"sorce\". Did you mean \"source\"?",
		`m = { version = "1" }`:                            "1:20 Say where the plugin \"m\" comes from: source = ",
		`m = { disk = "much" }`:                            "1:33 \"much\" is not a size such as",
		`m = { confined = "no" }`:                          "1:38 Unsuitable value: a bool is required",
		`m = { read = "x" }`:                               "1:34 A static list expression is required",
		`m = { read = ["a", ""] }`:                         "1:39 The path is empty",
		`m = { network = ["h"] }`:                          "1:37 \"h\" is no host with a port. Write it as in \"api.example.com:443\"",
		`m = { network = ["h:0"] }`:                        "1:37 \"h:0\" is no host",
		`m = { network = ["*:443"] }`:                      "1:37 \"*:443\" is no host",
		`m = { network = ["*.com:443"] }`:                  "1:37 \"*.com:443\" is no host",
		`m = { network = ["a@b.example:443"] }`:            "1:37 \"a@b.example:443\" is no host",
		`m = { network = [1] }`:                            "1:37 \"1\" is no host",
		`m = { network = [for a in ["a"] : a] }`:           "1:36 A static list expression is required",
		`m = { source = "a/b", source = "a/c" }`:           "1:42 source stands here twice",
		`m = { source = "a/b", sha256 = "x" }`:             "1:52 Unsuitable value: map of string required",
		`m = { (var.x) = "a" }`:                            "1:27 Variables may not be used here",
		"\nx { }\n":                                        "2:1 Blocks are not allowed here",
		"}\nrequired_plugins {":                            "2:1 A file has one required_plugins block; there is one on line 1 already",
		`m = { source = "a/b" ` + "\n" + `  read = ["x" }`: "2:",
	} {
		_, diags := All("p.hcl", []byte("required_plugins { "+entry+" }"))
		text := ""
		for _, d := range diags {
			text += fmt.Sprintf("%d:%d %s\n", d.Subject.Start.Line, d.Subject.Start.Column, d.Detail)
		}
		if !strings.HasPrefix(text, want) {
			t.Errorf("%s:\n%swant %s", entry, text, want)
		}
	}
}
