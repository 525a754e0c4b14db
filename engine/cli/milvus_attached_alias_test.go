package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/result"
)

// startForeignElsewhere is startForeign with Milvus Lite in Python. That server has partitions,
// aliases and fields without a value, and does not let anybody read a collection that is not loaded.
func startForeignElsewhere(t *testing.T, rows []map[string]any) *foreign {
	t.Helper()
	programs := foreignPrograms(t)
	e := &milvusEngine{t: t, port: freePort(t)}
	e.cmd = exec.Command(filepath.Join(programs, "milvus-lite"), "server", "--host", "127.0.0.1", "--port", e.port, "--data-dir", t.TempDir())
	e.launch()
	t.Cleanup(e.kill)
	f := &foreign{milvusEngine: e, dir: t.TempDir(), programs: programs}
	f.embed(rows, "")
	return f
}

// TestMilvusAttachedElsewhere attaches collections that only that server supports.
func TestMilvusAttachedElsewhere(t *testing.T) {
	rows := every(4, foreignRows(t, "train.tsv"))
	f := startForeignElsewhere(t, rows)
	t.Run("partitions", func(t *testing.T) { f.of(t).hasPartitions() })
	t.Run("released", func(t *testing.T) { f.of(t).isReleased() })
	t.Run("alias", func(t *testing.T) { f.of(t).isSwapped(rows) })
}

// hasPartitions reads partitions, and fields that have no value in some rows.
func (f *foreign) hasPartitions() {
	t := f.t
	items := slices.DeleteFunc(every(4, foreignRows(t, "test.tsv")), func(row map[string]any) bool { return row["lang"] != "en" })
	f.write("items.jsonl", items)
	f.make("cosine", "nullable")
	before := f.python("look", "cosine", "nullable")
	run := func(file, pipeline string) []result.Result {
		results, _ := f.run(file, "--pipeline", pipeline, "--input", "items.jsonl")
		return results
	}
	sameCandidates(t, "partitions", run(f.attach("cosine", `partitions = ["en"]`), "found"), run("embedded.hcl", "tenant"), false)
	sameCandidates(t, "nullable", run(f.attach("nullable", ""), "without"), run("embedded.hcl", "without"), false)
	if after := f.python("look", "cosine", "nullable"); after != before {
		t.Errorf("the collections have changed:\n%s\nbefore\n%s", after, before)
	}
}

// isReleased attaches a collection that is not loaded: its owner decides about loading.
func (f *foreign) isReleased() {
	t := f.t
	f.make("ip")
	f.python("call", "release_collection", `{"collection_name": "ip"}`)
	c, said := f.command("run", f.attach("ip", ""), "--pipeline", "found", "--input", "rows.jsonl", "--limit", "1")
	if out, _ := c.Output(); c.ProcessState.ExitCode() != 1 || len(out) > 0 || !strings.Contains(said.String(), "load") {
		t.Errorf("exit code %d, want 1, and %q\n%s", c.ProcessState.ExitCode(), out, said)
	}
	if state := f.python("call", "get_load_state", `{"collection_name": "ip"}`); !strings.Contains(state, `"state": 1`) { // LoadState.NotLoad of pymilvus
		t.Errorf("then it is %s", state)
	}
}

// isSwapped: the owner of an alias swaps the collection behind it, between two runs and while it is
// served. The next run, and the next version of the served pipeline, answer from the new collection.
func (f *foreign) isSwapped(rows []map[string]any) {
	t := f.t
	f.write("items.jsonl", rows[:4])
	f.make("ip=blue")
	for _, row := range rows {
		row["label"] = "new_" + row["label"].(string)
	}
	vectors := map[string]any{}
	for _, row := range f.read("vectors.jsonl") {
		vectors[row["id"].(string)] = row["vector"]
	}
	for _, row := range rows {
		row["vector"] = vectors[row["id"].(string)]
	}
	f.write("vectors.jsonl", rows)
	f.make("ip=green")
	swap := func(verb, to string) {
		f.python("call", verb, `{"collection_name": "`+to+`", "alias": "live"}`)
	}
	isNew := func(answer string) bool { return strings.HasPrefix(answer, "new_") }
	file := f.attach("live", "")
	run := func(want bool) {
		results, said := f.run(file, "--pipeline", "voted", "--input", "items.jsonl")
		for _, r := range results {
			if isNew(string(r.Answer)) != want {
				t.Errorf("item %s is %q, new: %v\n%s", r.ID, r.Answer, want, said)
			}
		}
	}
	swap("create_alias", "blue")
	run(false)
	swap("alter_alias", "green")
	run(true)

	c, _ := f.command("serve", file, "--listen", "127.0.0.1:0")
	c.Stderr = nil
	server := startServer(t, c)
	post := func(path, body string) []byte {
		reply, err := http.Post("http://"+server.address+"/v1/pipelines/voted/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		all, err := io.ReadAll(reply.Body)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v in %s", path, reply.Status, err, all)
		}
		return all
	}
	answer := func() string {
		body, _ := json.Marshal(map[string]any{"text": rows[0]["text"]})
		return string(jsonLines[result.Result](t, string(post("answer", string(body))))[0].Answer)
	}
	if got := answer(); !isNew(got) {
		t.Errorf("it is served as %q", got)
	}
	swap("alter_alias", "blue")
	post("rebuild?wait=true", "")
	if got := answer(); isNew(got) {
		t.Errorf("the next version answers %q", got)
	}
	server.end(t)
}
