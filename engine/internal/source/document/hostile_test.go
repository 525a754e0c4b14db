package document

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A folder with files that do harm, or block forever, when they are opened like other files. Each
// is listed with the reason why it is omitted; the other files are read.
func TestHostileFolder(t *testing.T) {
	dir := folder(t, map[string]string{"a.md": "# A", "a/deep/b.md": "b", "new\nline\x1b[31m.md": "odd", "gone.md": "x", "grows.md": "x"})
	for _, name := range []string{"large.txt", "large.pdf", "large.html"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte("%PDF-1.4\n"), 0o600))
		if err := os.Truncate(filepath.Join(dir, name), 500<<20); err != nil { // takes no space on disk
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"a/loop": "..", "a/deep/loop": "../../a", "self": "self", "one": "two", "two": "one", "device": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	want := map[string]string{
		"a.md": "", "a/deep/b.md": "", "new\nline\x1b[31m.md": "", "gone.md": "", "grows.md": "",
		"large.txt": "larger than", "large.pdf": "larger than", "large.html": "larger than",
	}
	if err := os.WriteFile(filepath.Join(dir, "latin\xe9.md"), nil, 0o600); err == nil { // not on every system
		want["latin\uFFFD.md"] = "not valid UTF-8"
	}
	if makePipe(filepath.Join(dir, "pipe.md")) == nil {
		want["pipe.md"] = "not a regular file"
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "locked.md"), []byte("x"), 0))
	want["locked.md"] = "permission denied"
	if f, err := os.Open(filepath.Join(dir, "locked.md")); err == nil { // a test run as root may read everything
		_ = f.Close()
		want["locked.md"] = ""
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	docs := open(t, Set{Path: dir, Max: 1 << 20})
	files, err := docs.List(t.Context())
	must.Do(t, err)
	for _, f := range files {
		fault, ok := want[f.ID]
		if !ok || (f.Err == nil) != (fault == "") || f.Err != nil && !strings.Contains(f.Err.Error(), fault) {
			t.Errorf("%q is listed with %v, want %q", f.ID, f.Err, fault)
		}
		delete(want, f.ID)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %q", want)
	}
	if _, _, err := docs.Read(t.Context(), "large.txt"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a large file was read: %v", err)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
		t.Errorf("%d MB were taken for files that are too large", (after.TotalAlloc-before.TotalAlloc)>>20)
	}

	// A change of a file after the listing is an error of that file, too.
	for name, change := range map[string]func(string) error{
		"gone.md":  os.Remove,
		"grows.md": func(path string) error { return os.Truncate(path, 2<<20) },
		"a.md": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return makePipe(path)
		},
	} {
		if err := change(filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		if d, _, err := docs.Read(t.Context(), name); err == nil {
			t.Errorf("%s was read: %q", name, d.Text)
		}
	}
}

// TestHostileTexts reads texts with encodings, sizes and line lengths that do not occur in
// practice.
func TestHostileTexts(t *testing.T) {
	size := MaxBytes
	if testing.Short() {
		size = 4 << 20
	}
	wide := "\xff\xfe" + strings.Repeat("\x00\xd8", 1000) // halves of surrogate pairs
	for name, c := range map[string]struct{ content, has, fault string }{
		"line.txt":   {strings.Repeat("a ", size/2), "a a", ""},
		"word.md":    {strings.Repeat("word", size/4), "wordword", ""},
		"fences.md":  {"# Title\n```\n~~~\n````\n# not closed\n" + strings.Repeat("```\n", 1<<20), "not closed", ""},
		"front.md":   {"---\nnever closed\n" + strings.Repeat("# x\n", 1<<20), "never closed", ""},
		"head.md":    {"# " + strings.Repeat("ж", size/2) + "\n", "ж", ""},
		"title.html": {"<title>" + strings.Repeat("ж", 1<<20) + "</title><p>text", "text", ""},
		"marks.md":   {"# \x1b]0;title\x07 \u202eevil\n", "\x1b]0;title\x07", ""}, // unchanged: who shows it makes it harmless
		"zero.txt":   {"text\x00text", "", "binary"},
		"halves.txt": {wide, "\uFFFD", ""},
		"odd.txt":    {"\xff\xfeh\x00i\x00!", "", "binary"},
		"big.txt":    {"\xfe\xff\x00h\x00i", "hi", ""},
		"marked.txt": {"\xef\xbb\xbf\xef\xbb\xbftwice", "twice", ""},
		"bad.txt":    {strings.Repeat("tén bytes \xc3", 1000), "\uFFFD", ""},
		"worse.txt":  {strings.Repeat("\xf0\x9f\x92", 1000), "", "binary"},
		"32.txt":     {"\xff\xfe\x00\x00h\x00\x00\x00", "", "binary"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := open(t, Set{Path: folder(t, map[string]string{name: c.content}), Max: 2 * MaxBytes})
			d, _, err := dir.Read(t.Context(), name)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("got %.100q, %v", d.Text, err)
				}
				return
			}
			if err != nil || !strings.Contains(d.Text, c.has) || !utf8.ValidString(d.Text) {
				t.Errorf("got %.100q, %v", d.Text, err)
			}
			if title, _ := d.Meta["title"].(string); title == "" || len(title) > longestTitle || !utf8.ValidString(title) { // each chunk has it
				t.Errorf("a title of %d bytes", len(title))
			}
		})
	}
}
