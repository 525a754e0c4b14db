package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	composed, decomposed := norm.NFC.String, norm.NFD.String
	for _, dir := range []string{decomposed("für"), "a[1]"} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	for _, file := range []string{"für/alt.csv", "für/ü.csv", "é.csv"} {
		write(t, decomposed(file), file)
	}
	write(t, composed("é.csv"), "exact")
	write(t, "a[1]/b*.csv", "")
	for name, want := range map[string]string{
		composed("für/ü.csv"):                       decomposed("für/ü.csv"),
		decomposed("für") + "/" + composed("ü.csv"): decomposed("für/ü.csv"),
		composed("für/alt.csv"):                     decomposed("für/alt.csv"),
		composed("für/nü.csv"):                      filepath.Join(decomposed("für"), composed("nü.csv")),
		composed("é.csv"):                           composed("é.csv"),
		decomposed("é.csv"):                         decomposed("é.csv"),
		"nothing/" + composed("ü"):                  "nothing/" + composed("ü"),
		"/":                                         "/",
		"":                                          "",
	} {
		if got := disk.Find(name); got != want {
			t.Errorf("%q is found as %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string][2]string{
		"a[1]":                          {"a[1]", ""},
		"a[1]/b*.csv":                   {"a[1]/b*.csv", ""},
		"a[1]/c*.csv":                   {"a[1]", "c*.csv"},
		"a[1]/missing/**/*.md":          {"a[1]", "missing/**/*.md"},
		"b[1]/c.csv":                    {".", "b[1]/c.csv"},
		"missing.csv":                   {"missing.csv", ""},
		composed("für") + "/*" + "ü.md": {decomposed("für"), "*" + "ü.md"},
		"/*":                            {"/", "*"},
	} {
		if base, pattern := disk.SplitGlob(name); base != want[0] || pattern != want[1] || disk.IsGlob(name) != (pattern != "") {
			t.Errorf("%q is split into %q and %q, want %q", name, base, pattern, want)
		}
	}
}
