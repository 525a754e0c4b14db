package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestMilvusLongRows builds from a file with rows that Milvus refuses: each is reported with its line
// and left out, even if it was shorter before.
func TestMilvusLongRows(t *testing.T) {
	e := engineFor(t)
	dir := milvusFolder(t, 0, 5)
	long := strings.Repeat("long", 17_000)
	file := rows(300) + // lines 2 to 301
		"a\t" + long + "\ttopic1\n" +
		long + "\tthe id\ttopic1\n" +
		"c\tthe label\t" + long + "\n" +
		"d\tthe last one\ttopic1\n"
	build := func(file, entries string, faults ...string) {
		t.Helper()
		write(t, dir, "rows.tsv", file)
		c, stderr := milvusRun(t, e, dir)
		_ = c.Run()
		code := 0
		for _, fault := range faults {
			code = 3
			if !strings.Contains(stderr.String(), fault) {
				t.Errorf("%q is not reported", fault)
			}
		}
		if got := c.ProcessState.ExitCode(); got != code || !strings.Contains(stderr.String(), entries) || strings.Count(stderr.String(), "left out") != len(faults) {
			t.Errorf("exit code %d, want %d, and %q:\n%s", got, code, entries, stderr)
		}
	}
	faults := []string{
		`rows.tsv:302: the text of entry "a" has 68000 bytes and Milvus takes 65535: split it into several rows (the row is left out)`,
		fmt.Sprintf(`rows.tsv:303: the id of entry "%s" has 68000 bytes and Milvus takes 65535: shorten it (the row is left out)`, long[:40]),
		`rows.tsv:304: the label of entry "c" has 68000 bytes and Milvus takes 65535: shorten it (the row is left out)`,
	}
	build(file, "301 entries, 301 embedded", faults...)
	build(file, "301 entries, up to date", faults...)
	build(strings.Replace(file, "the last one", long, 1), "300 entries, 0 embedded with hashing, 1 removed", append(faults, "rows.tsv:305: the text of entry")...)
	build(rows(300), "300 entries, up to date")
}
