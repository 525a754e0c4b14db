package cli

import (
	"strings"
	"testing"
)

// The example is valid in every folder.
func TestMilvusExample(t *testing.T) {
	must(t, racflow(t, t.TempDir(), "validate", milvusExample(t)))
}

// TestMilvusInPlace runs the example and the main pipeline as README describes: a second run builds
// nothing, and the answers are those of the embedded store.
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
	// The server takes much memory for long vectors.
	shop := []string{"--limit", "5", "-set", "embed.shop.dimension=256", milvusExample(t)}
	run("560 entries, 560 embedded", shop...)
	run("560 entries, up to date", shop...)
	// TestMilvusFitted compares what voters learn.
	intents := []string{"--limit", "80", "-var", "election=soft", "-set", "linear.enabled=false", "-set", "embed.utterances.dimension=256", intent(t)}
	lines := strings.Split(run("560 entries, 560 embedded", append(intents, "-var", "store=milvus")...), "\n")
	others := strings.Split(run("560 entries, 560 embedded", append(intents, "-var", "store=local")...), "\n")
	differ := 0
	for i := range min(len(lines), len(others)) {
		if answerOf(lines[i]) != answerOf(others[i]) {
			differ++
		}
	}
	if len(lines) != 82 || len(lines) != len(others) || differ > 1 { // because of ties
		t.Errorf("%d lines, with the embedded store %d; %d answers differ", len(lines), len(others), differ)
	}
}

// answerOf returns the item and the answer of a line; the rest is rounded.
func answerOf(line string) string {
	columns := strings.Split(line, "\t")
	return strings.Join(columns[:min(3, len(columns))], "\t")
}

func milvusExample(t *testing.T) string { return absolute(t, "../../examples/milvus/intent.hcl") }
