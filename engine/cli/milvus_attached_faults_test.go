package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestMilvusAttachedRefused attaches unsuitable collections: a run says why and what to do, and
// changes nothing.
func TestMilvusAttachedRefused(t *testing.T) {
	f := startForeign(t, every(5, foreignRows(t, "train.tsv")), "")
	kinds := []string{"ip", "half", "binary", "other_embedder", "two_vectors"}
	f.make(kinds...)
	before := f.python("look", kinds...)
	for _, test := range []struct {
		name, collection, fields string
		wants                    []string
	}{
		{"a name that nobody has", "nobody", "", []string{`no collection "nobody"`, "two_vectors"}},
		{"another dimension", "half", "", []string{"192 dimensions", "minilm have 384", "embed with the model"}},
		{"a metric of bits", "binary", "", []string{"BinaryVector"}},
		{"another embedder", "other_embedder", "", []string{"not those of minilm", "mean cosine 0.0", "over 50 entries", "embed with the model"}},
		{"a field that is not there", "ip", `fields { text = "contents" }`, []string{"contents", "content"}},
		{"two fields with vectors", "two_vectors", "", []string{"first", "second", "fields { vector ="}},
		{"a text that is a number", "ip", `fields { text = "year" }`, []string{"year"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := f.of(t)
			c, said := f.command("run", f.attach(test.collection, test.fields), "--pipeline", "found", "--input", "rows.jsonl", "--limit", "1")
			out, _ := c.Output()
			if c.ProcessState.ExitCode() != 1 || len(out) > 0 {
				t.Errorf("exit code %d, want 1, and %q\n%s", c.ProcessState.ExitCode(), out, said)
			}
			for _, want := range test.wants {
				if !strings.Contains(said.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
	if after := f.python("look", kinds...); after != before {
		t.Errorf("the collections have changed:\n%s\nbefore\n%s", after, before)
	}
	t.Run("dropped meanwhile", func(t *testing.T) { f.of(t).isDropped() })
}

// isDropped drops a collection in the middle of a run: answers so far are kept, and the other items
// fail with advice.
func (f *foreign) isDropped() {
	t := f.t
	c, said := f.command("run", f.attach("ip", ""), "--pipeline", "found", "--format", "jsonl", "--input", "-")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	lines := bufio.NewReader(stdout)
	ask := func(id string) string {
		if _, err := fmt.Fprintf(stdin, "{\"id\": %q, \"text\": \"where is my parcel\"}\n", id); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return line
	}
	if line := ask("first"); !strings.Contains(line, `"candidates":[{`) {
		t.Errorf("it answers %s", line)
	}
	f.python("call", "drop_collection", `{"collection_name": "ip"}`)
	if line := ask("second"); !strings.Contains(line, `"error":{`) || !strings.Contains(line, "is gone from the server") {
		t.Errorf("without a collection it answers %s", line)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if _ = c.Wait(); c.ProcessState.ExitCode() != 3 || len(rest) > 0 {
		t.Errorf("exit code %d, want 3, and %q\n%s", c.ProcessState.ExitCode(), rest, said)
	}
	if names := f.python("call", "list_collections", "{}"); strings.Contains(names, `"ip"`) {
		t.Errorf("then there are %s", names)
	}
}
