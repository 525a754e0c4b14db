package cli

import (
	"strings"
	"testing"
)

// The example is valid wherever it is read.
func TestMilvusExample(t *testing.T) {
	must(t, racflow(t, t.TempDir(), "validate", milvusExample(t)))
}

// TestMilvusInPlace runs the example and the main pipeline as README says: a
// second run builds nothing, and the answers are those of the embedded store.
func TestMilvusInPlace(t *testing.T) {
	e := startEngine(t)
	dir := t.TempDir()
	run := func(wants string, args ...string) string {
		t.Helper()
		c := racflow(t, dir, append([]string{"run", "--format", "tsv", "-var", "embedder=hashing"}, args...)...)
		c.Env = e.env()
		out, stderr := good(t, c)
		if !strings.Contains(stderr, wants) {
			t.Errorf("%v: want %q\n%s", args, wants, stderr)
		}
		return out
	}
	run("560 entries, 560 embedded", milvusExample(t))
	run("560 entries, up to date", milvusExample(t))
	first := run("560 entries, 560 embedded", "-var", "store=milvus", intent(t))
	again := run("560 entries, up to date", "-var", "store=milvus", intent(t))
	local := run("560 entries, 560 embedded", "-var", "store=local", intent(t))
	for name, other := range map[string]string{"the second run": again, "the embedded store": local} {
		differ := 0
		lines, others := strings.Split(first, "\n"), strings.Split(other, "\n")
		for i := range min(len(lines), len(others)) {
			if answerOf(lines[i]) != answerOf(others[i]) {
				differ++
			}
		}
		if len(lines) != 282 || len(lines) != len(others) || differ > 2 { // of 280, by ties
			t.Errorf("%s: %d and %d lines, %d answers differ", name, len(lines), len(others), differ)
		}
	}
}

// answerOf is the item and the answer of a line; what follows is rounded.
func answerOf(line string) string {
	columns := strings.Split(line, "\t")
	return strings.Join(columns[:min(3, len(columns))], "\t")
}

func milvusExample(t *testing.T) string { return absolute(t, "../../examples/milvus/intent.hcl") }
