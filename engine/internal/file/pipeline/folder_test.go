package pipeline

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInside examines the files that belong to a pipeline file in checkouts, beside links, and in a home.
func TestInside(t *testing.T) {
	root := resolved(t.TempDir())
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, dir := range []string{"work/checkout/.git", "work/checkout/deep", "work/plain", "home/.ssh", "home/files", "home/.git"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"work/checkout/data", "work/other", "home/.ssh/id", "home/rows", "home/files/rows"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"work/checkout/out": "work/other", "work/checkout/in": "work/checkout/data", "work/checkout/folder": "home",
		"work/checkout/nothing": "work/new", "work/checkout/nowhere": "work/checkout/new"} {
		if err := os.Symlink(at(to), at(name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", at("home"))
	for _, test := range []struct {
		file, folder, path string
		inside             bool
	}{
		{"work/checkout/deep/p.hcl", "work/checkout", "work/checkout/data", true},
		{"work/checkout/deep/p.hcl", "work/checkout", "work/checkout/missing/file", true},
		{"work/checkout/p.hcl", "work/checkout", "work/other", false},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/../other", false},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/in", true},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/out", false},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/nothing", false},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/nowhere", true},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/folder/rows", false},
		{"work/checkout/p.hcl", "work/checkout", "work/checkout/folder/missing", false},
		{"work/plain/p.hcl", "work/plain", "work/other", false},
		{"home/p.hcl", "home", "home/rows", true},
		{"home/p.hcl", "home", "home/.ssh/id", false},
		{"home/files/p.hcl", "home/files", "home/rows", false}, // the home is not a checkout
		{"home/files/p.hcl", "home/files", "home/files/rows", true},
	} {
		folder := Folder(at(test.file))
		if folder != at(test.folder) {
			t.Errorf("the folder of %s is %s", test.file, folder)
		}
		if got := Inside(folder, at(test.path)); got != test.inside {
			t.Errorf("%s is inside %s: %v", test.path, test.folder, got)
		}
	}
}

func TestIsAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"http://a": true, "https://a.example/v1": true, "127.0.0.1:19530": true, "localhost:80": true, "[::1]:80": true,
		"": false, "https://": false, "https://me:key@a.example": false, "key": false, "ftp://a": false, "a:b": false, "me@a:80": false, "a b:80": false, "a:65536": false,
	} {
		if got := isAddress(text); got != want {
			t.Errorf("%q is an address: %v", text, got)
		}
	}
}
