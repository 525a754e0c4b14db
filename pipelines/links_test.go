package pipelines_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	indented = regexp.MustCompile(`(?m)^( {4}|\t).*(\n|\z)`)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	code     = regexp.MustCompile("`+[^`]*`+")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)\s]*)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	unsaid   = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	table    = regexp.MustCompile(`(?m)^ *\|.*$`)
	block    = regexp.MustCompile(`\n\s*\n|\n\s*([-*]|\d+\.) |(?m:^#.*$)`)
	stop     = regexp.MustCompile(`[.!?]["')*_]*\s+`)
)

// written are the texts of the Markdown files that people write, by their path from the repository's root.
func written(t *testing.T) map[string]string {
	pages := map[string]string{}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != ".." && (name[0] == '.' || slices.Contains([]string{"testdata", "vendor", "templates", "quern", "node_modules"}, name)):
			return filepath.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		pages[filepath.ToSlash(path)[len("../"):]] = string(text)
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, error %v", len(pages), err)
	}
	return pages
}

// anchors are the names that GitHub gives the headings of a page.
func anchors(text string) []string {
	names, before := []string{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := unsaid.ReplaceAllString(strings.ToLower(link.ReplaceAllString(m[1], "$1")), "")
		name = strings.ReplaceAll(name, " ", "-")
		names = append(names, name)
		if n := before[name]; n > 0 {
			names[len(names)-1] += fmt.Sprint("-", n)
		}
		before[name]++
	}
	return names
}

// TestLinks: relative links lead to files that are there, and to headings in them.
func TestLinks(t *testing.T) {
	for path, text := range written(t) {
		text = code.ReplaceAllString(fence.ReplaceAllString(text, ""), "x")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(m[2])
			if err != nil || to.IsAbs() {
				continue
			}
			target := filepath.Join("..", filepath.Dir(path), cmp.Or(to.Path, filepath.Base(path)))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[2])
			} else if there, _ := os.ReadFile(target); to.Fragment != "" && !slices.Contains(anchors(string(there)), to.Fragment) {
				t.Errorf("%s links to %s, which has no such heading", path, m[2])
			}
		}
	}
}

// sentences are those of a page, without its code, tables and addresses.
func sentences(text string) []string {
	for _, not := range []*regexp.Regexp{comment, fence, indented, table} {
		text = not.ReplaceAllString(text, "\n")
	}
	text = link.ReplaceAllString(code.ReplaceAllString(text, "x"), "$1")
	var all []string
	for _, paragraph := range block.Split("\n"+text, -1) {
		for _, s := range stop.Split(paragraph, -1) {
			if len(strings.Fields(s)) > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}

// TestPagesReadWell: a page of the manual is short, README.md still shorter, and at most one in 20 of a page's sentences has
// more than 30 words.
func TestPagesReadWell(t *testing.T) {
	guide := regexp.MustCompile(`^(pipelines/[^/]+|((sdk|examples)/(.+/)?)?README|SECURITY|ARCHITECTURE|COMPATIBILITY|CONTRIBUTING)\.md$`)
	for path, text := range written(t) {
		if !guide.MatchString(path) {
			continue
		}
		most := 300
		if path == "README.md" {
			most = 150
		}
		if lines := strings.Count(text, "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d: split it", path, lines, most)
		}
		all := sentences(text)
		long := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return len(strings.Fields(s)) <= 30 })
		if len(long)*20 > len(all) {
			t.Errorf("%s: %d of %d sentences have more than 30 words:\n%s", path, len(long), len(all), strings.Join(long, "\n--\n"))
		}
	}
}
