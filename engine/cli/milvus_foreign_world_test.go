package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/result"
)

// foreign is a folder with rows, their vectors, and pipelines over them; and a Milvus server in which
// Python libraries make collections of these rows.
type foreign struct {
	*milvusEngine
	dir, programs string
}

// foreignPrograms returns the folder with Python and the programs of the libraries.
func foreignPrograms(t *testing.T) string {
	t.Helper()
	programs := os.Getenv("RACFLOW_TEST_MILVUS_FOREIGN")
	if programs == "" {
		t.Skip("it takes minutes with libraries of Python: use .ci/milvus-foreign")
	}
	return programs
}

// startForeign starts a server and lets the embedded store embed the rows. columns holds the column
// arguments of their source.
func startForeign(t *testing.T, rows []map[string]any, columns string) *foreign {
	t.Helper()
	programs := foreignPrograms(t)
	f := &foreign{milvusEngine: startEngine(t), dir: t.TempDir(), programs: programs}
	f.embed(rows, columns)
	return f
}

// of returns the same world for a subtest.
func (f *foreign) of(t *testing.T) *foreign {
	return &foreign{milvusEngine: &milvusEngine{t: t, port: f.port}, dir: f.dir, programs: f.programs}
}

func (f *foreign) write(name string, rows []map[string]any) {
	f.t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			f.t.Fatal(err)
		}
	}
	write(f.t, f.dir, name, b.String())
}

func (f *foreign) read(name string) (rows []map[string]any) {
	f.t.Helper()
	return jsonLines[map[string]any](f.t, readFile(f.t, f.dir, name))
}

// embed writes the rows with racflow's vectors to vectors.jsonl.
func (f *foreign) embed(rows []map[string]any, columns string) {
	f.t.Helper()
	f.write("rows.jsonl", rows)
	write(f.t, f.dir, "embedded.hcl", fmt.Sprintf(foreignPipelines, fmt.Sprintf(embeddedKnowledge, columns)))
	f.run("embedded.hcl", "--pipeline", "found", "--limit", "1", "--input", "rows.jsonl")
	write(f.t, f.dir, "vectors.jsonl", entriesOf(f.t, f.dir, "rows", "--vectors"))
}

// python lets the libraries work on the server.
func (f *foreign) python(verb string, args ...string) string {
	f.t.Helper()
	c := exec.Command(filepath.Join(f.programs, "python"), append([]string{"../../.ci/milvus-foreign.py", verb, f.address()}, args...)...)
	out, _ := good(f.t, c)
	return out
}

// make makes collections of kinds that .ci/milvus-foreign.py knows.
func (f *foreign) make(kinds ...string) {
	f.t.Helper()
	f.python("make", append([]string{filepath.Join(f.dir, "vectors.jsonl")}, kinds...)...)
}

// attach writes a file of pipelines over the collection and returns its name.
func (f *foreign) attach(collection, fields string) string {
	f.t.Helper()
	knowledge := fmt.Sprintf(attachedKnowledge, f.address(), collection, fields)
	write(f.t, f.dir, collection+".hcl", fmt.Sprintf(foreignPipelines, knowledge))
	return collection + ".hcl"
}

// command returns racflow with a pipeline file, and a separate state folder for this file.
func (f *foreign) command(verb, file string, args ...string) (c *exec.Cmd, stderr *bytes.Buffer) {
	f.t.Helper()
	flags := append([]string{verb}, args...)
	if file != "embedded.hcl" {
		flags = append(flags, "--state", strings.TrimSuffix(file, ".hcl"))
	}
	c = racflow(f.t, f.dir, append(flags, file)...)
	stderr = &bytes.Buffer{}
	c.Stderr = stderr
	return c, stderr
}

// run sends items through a pipeline; none may fail.
func (f *foreign) run(file string, args ...string) (results []result.Result, stderr string) {
	f.t.Helper()
	c, _ := f.command("run", file, append([]string{"--format", "jsonl"}, args...)...)
	out, stderr := good(f.t, c)
	return jsonLines[result.Result](f.t, out), stderr
}

// foreignRows returns the example utterances with metadata of each type.
func foreignRows(t *testing.T, name string) (rows []map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(readFile(t, "../../examples/intent", name)), "\n")
	for i, line := range lines[1:] {
		columns := strings.Split(line, "\t")
		row := map[string]any{
			"id": columns[0], "text": columns[1], "label": columns[2],
			"lang": []string{"de", "en", "fr"}[i%3], "year": 2018 + i%7, "weight": float64(i)/8 + .0625, "urgent": i%5 == 0,
			"team": []string{"a", "b"}[i%2], "level": i % 4,
		}
		if i%5 == 0 {
			row["note"] = "at once"
		}
		rows = append(rows, row)
	}
	return rows
}

// every returns each nth row as an item with the metadata that filters read.
func every(n int, rows []map[string]any) (some []map[string]any) {
	for i := 0; i < len(rows); i += n {
		some = append(some, maps.Clone(rows[i]))
	}
	return some
}
