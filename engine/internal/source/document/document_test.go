package document

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder writes files and returns their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return dir
}

func open(t *testing.T, s Set) *Folder {
	t.Helper()
	f, err := Open(s)
	must.Do(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// list returns the names, with any error after a colon.
func list(t *testing.T, s Set) []string {
	t.Helper()
	files, err := open(t, s).List(t.Context())
	must.Do(t, err)
	var all []string
	for _, f := range files {
		switch {
		case f.Err != nil:
			all = append(all, f.ID+": "+f.Err.Error())
		case len(f.Hash) != hashBytes:
			t.Errorf("%s has a hash of %d bytes", f.ID, len(f.Hash))
			fallthrough
		default:
			all = append(all, f.ID)
		}
	}
	return all
}

// TestStamp: the stamp changes with the documents that exist, and with nothing else.
func TestStamp(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "# A", "sub/b.md": "b", "left/out.md": "x"})
	f, err := Open(Set{Path: dir, Exclude: []string{"left"}})
	must.Do(t, err)
	defer f.Close()
	stamp := func() string {
		s, err := f.Stamp(t.Context())
		must.Do(t, err)
		return s
	}
	last := stamp()
	for name, c := range map[string]struct {
		do      func() error
		changes bool
	}{
		"nothing":          {func() error { return nil }, false},
		"what is left out": {func() error { return os.WriteFile(filepath.Join(dir, "left/out.md"), []byte("longer"), 0o600) }, false},
		"a longer one":     {func() error { return os.WriteFile(filepath.Join(dir, "a.md"), []byte("# A longer"), 0o600) }, true},
		"a later one":      {func() error { return os.Chtimes(filepath.Join(dir, "sub/b.md"), time.Time{}, time.Unix(1, 0)) }, true},
		"another one":      {func() error { return os.WriteFile(filepath.Join(dir, "c.md"), nil, 0o600) }, true},
	} {
		must.Do(t, c.do())
		now := stamp()
		if (now != last) != c.changes {
			t.Errorf("%s: %v", name, now != last)
		}
		last = now
	}
}

func TestList(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.md": "# A", "b.txt": "b", "sub/c.md": "c", "sub/deep/d.go": "package d", "sub/deep/e.png": "x", ".hidden": "h", "sub/~$d.docx": "lock", ".git/config": "g",
		"node_modules/x/y.md": "y", "[odd]{x}.md": "odd", "large.txt": strings.Repeat("x", 101),
	})
	outside := folder(t, map[string]string{"secret.md": "secret", "folder/s.md": "s"})
	for link, to := range map[string]string{
		"out.md": filepath.Join(outside, "secret.md"), "outdir": filepath.Join(outside, "folder"), "nowhere.md": "missing.md",
		"up.md": "../../../" + filepath.Base(outside) + "/secret.md", "inside.md": "a.md", "loop": ".",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	large := "large.txt: it is larger than 100 bytes; raise max_bytes or leave it out with exclude"
	for name, c := range map[string]struct {
		path    string
		exclude []string
		want    []string
	}{
		"all": {"", nil, []string{"[odd]{x}.md", "a.md", "b.txt", "inside.md", large, "node_modules/x/y.md", "sub/c.md", "sub/deep/d.go", "sub/deep/e.png"}},
		"some left out": {"", []string{"node_modules", "*.png", "sub/*.md", "large.*", "inside.md", "[[]*"},
			[]string{"a.md", "b.txt", "sub/deep/d.go"}},
		"a glob":        {"*.md", nil, []string{"[odd]{x}.md", "a.md", "inside.md"}},
		"a deep glob":   {"sub/**/*.{md,go}", nil, []string{"c.md", "deep/d.go"}},
		"one file":      {"a.md", nil, []string{"a.md"}},
		"an odd name":   {"[odd]{x}.md", nil, []string{"[odd]{x}.md"}},
		"one deep file": {"sub/deep/d.go", nil, []string{"d.go"}},
		"one hidden":    {".hidden", nil, []string{".hidden"}},
		"one too large": {"large.txt", nil, []string{large}},
		"one left out":  {"a.md", []string{"*.md"}, nil},
		"one link":      {"inside.md", nil, []string{"inside.md"}},
		"a link out":    {"out.md", nil, []string{"out.md: path escapes from parent; a link is followed within its folder only"}},
		"none":          {"*.pdf", nil, nil},
		"only excluded": {"sub", []string{"**"}, nil},
	} {
		if diff := cmp.Diff(c.want, list(t, Set{Path: filepath.Join(dir, c.path), Exclude: c.exclude, Max: 100})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := Open(Set{Path: filepath.Join(dir, "missing")}); err == nil {
		t.Error("a folder that is not there was opened")
	}
	for path, want := range map[string][2]bool{
		"": {true, false}, "a.md": {true, true}, "b.txt": {false, true}, "sub/deep/d.go": {true, true}, "*.txt": {true, false},
		"missing.tsv": {false, false}, "[odd]{x}.md": {true, true}, "missing.go": {false, false},
	} {
		if got := [2]bool{Is(filepath.Join(dir, path)), May(filepath.Join(dir, path))}; got != want {
			t.Errorf("%q: is and may be documents: %v", path, got)
		}
	}
}

// If a path names one file, the other files of its folder do not matter.
func TestOneFileAmongOthers(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "# A", "closed/b.md": "b"})
	closed := filepath.Join(dir, "closed")
	must.Do(t, os.Chmod(closed, 0))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) }) //nolint:gosec // it is a folder
	if diff := cmp.Diff([]string{"a.md"}, list(t, Set{Path: filepath.Join(dir, "a.md")})); diff != "" {
		t.Error(diff)
	}
	d, _, err := open(t, Set{Path: filepath.Join(dir, "a.md")}).Read(t.Context(), "a.md")
	if err != nil || d.Text != "# A" || d.Meta["path"] != "a.md" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestRead(t *testing.T) {
	files := map[string]struct{ content, text, title, format, fault string }{
		"a.txt":      {content: "plain\r\ntext\n", text: "plain\r\ntext\n", title: "a.txt", format: "text"},
		"bom.md":     {content: "\xef\xbb\xbf# Title #\ntext", text: "# Title #\ntext", title: "Title", format: "markdown"},
		"front.md":   {content: "---\ntitle: x\n# no\n---\n```\n# no\n```\n    # no\n\n##no\nReal\n====\n", title: "x", format: "markdown", text: "---\ntitle: x\n# no\n---\n```\n# no\n```\n    # no\n\n##no\nReal\n====\n"},
		"matter.md":  {content: "---\nlayout: post\ntitle: >-\n  Fees:\n  a list\ntags: [a]\n...\n# No\n", text: "---\nlayout: post\ntitle: >-\n  Fees:\n  a list\ntags: [a]\n...\n# No\n", title: "Fees: a list", format: "markdown"},
		"toml.md":    {content: "+++\ndate = 2026-01-01\ntitle = \"All \\\"cards\\\"\" \n[title]\nx = 1\n+++\n# No\n", text: "+++\ndate = 2026-01-01\ntitle = \"All \\\"cards\\\"\" \n[title]\nx = 1\n+++\n# No\n", title: `All "cards"`, format: "markdown"},
		"odd.md":     {content: "---\ntitle: [a\n---\n# Yes\n", text: "---\ntitle: [a\n---\n# Yes\n", title: "Yes", format: "markdown"},
		"rule.md":    {content: "---\n# Yes\ntitle: x\n", text: "---\n# Yes\ntitle: x\n", title: "Yes", format: "markdown"},
		"none.md":    {content: "no heading", text: "no heading", title: "none.md", format: "markdown"},
		"latin.txt":  {content: "caf\xe9 au lait", text: "café au lait", title: "latin.txt", format: "text"},
		"wide.txt":   {content: "\xff\xfeh\x00i\x00=\xd8\x42\xde", text: "hi🙂", title: "wide.txt", format: "text"},
		"x/main.GO":  {content: "package main", text: "package main", title: "main.GO", format: "code"},
		"noname":     {content: "text without a suffix", text: "text without a suffix", title: "noname", format: "text"},
		"empty.txt":  {content: " \n\t\n", text: "", title: "empty.txt", format: "text"},
		"image.png":  {content: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", fault: "binary"},
		"noise.txt":  {content: strings.Repeat("\x80\xfe\xc1a", 100), fault: "binary"},
		"paper.pdf":  {content: "%PDF-1.4\n...", fault: "its PDF cannot be read"},
		"paper.txt":  {content: "%PDF-1.4\n...", fault: "binary"},
		"large.html": {content: strings.Repeat("x", 1001), fault: "larger than 1000 bytes"},
	}
	content := map[string]string{}
	for name, f := range files {
		content[name] = f.content
	}
	dir := open(t, Set{Path: folder(t, content), Max: 1000})
	listed, err := dir.List(t.Context())
	if err != nil || len(listed) != len(files) {
		t.Fatalf("%d files listed, %v", len(listed), err)
	}
	for _, file := range listed {
		want := files[file.ID]
		d, hash, err := dir.Read(t.Context(), file.ID)
		if want.fault != "" {
			if err == nil || !strings.Contains(err.Error(), want.fault) {
				t.Errorf("%s: got %v, want %q", file.ID, err, want.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", file.ID, err)
			continue
		}
		must.Equal(t, file.ID, []any{file.ID, want.text, want.title, want.format, file.ID}, []any{d.ID, d.Text, d.Meta["title"], d.Meta["format"], d.Meta["path"]})
		if !slices.Equal(hash, file.Hash) {
			t.Errorf("%s has another hash when it is read", file.ID)
		}
	}
	if _, _, err := dir.Read(t.Context(), "../secret"); err == nil {
		t.Error("a file outside the folder was read")
	}
}
