package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// buildsFile is a pipeline whose knowledge has an index version for each dimension.
const buildsFile = `
variable "dimension" { default = 64 }

knowledge "texts" {
  source { path = "rows.tsv" }
  embed {
    use = "hashing"
    config { dimension = var.dimension }
  }
  store {
    use = "milvus"
    config {
      address    = env("MILVUS_ADDRESS", "")
      prefix     = env("MILVUS_PREFIX", "")
      index      = "FLAT"
      batch_rows = 100
    }
  }
}

pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" { from = knowledge.texts }
  sample "neighbours" { use = "neighbours" }
  sample "prototype"  { use = "prototype" }
  elect "e" { use = "soft" }
}
`

// buildRun returns a run of the file, with an embedder of the given dimension.
func buildRun(t *testing.T, dir string, at *milvusEngine, dimension int, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, dir, append([]string{"run", "--format", "tsv", "-var", fmt.Sprint("dimension=", dimension)}, append(args, "p.hcl")...)...)
	c.Env = at.env()
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	return c, stderr
}

// TestMilvusTwoBuilds: two processes with separate state folders build the same knowledge at once,
// and then change it at once. Both give the same answers, from one index version with all entries.
func TestMilvusTwoBuilds(t *testing.T) {
	e := engineFor(t)
	dir := folder(t, map[string]string{"p.hcl": buildsFile, "items.tsv": rows(20)})
	for _, n := range []int{1500, 1700} {
		write(t, dir, "rows.tsv", rows(n))
		var runs [2]*exec.Cmd
		var answers, reported [2]*bytes.Buffer
		for i := range runs {
			runs[i], reported[i] = buildRun(t, dir, e, 64, "--state", fmt.Sprint("state", i))
			answers[i] = &bytes.Buffer{}
			runs[i].Stdout = answers[i]
			if err := runs[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range runs {
			if err := c.Wait(); err != nil || !strings.Contains(reported[i].String(), fmt.Sprint(n, " entries")) {
				t.Errorf("%d rows, process %d: %v\n%s", n, i, err, reported[i])
			}
		}
		if answers[0].String() != answers[1].String() || strings.Count(answers[0].String(), "topic") < 20 {
			t.Errorf("%d rows: they answer\n%s and\n%s", n, answers[0], answers[1])
		}
		list := racflow(t, dir, "knowledge", "list", "--json", "--state", "state0", "p.hcl")
		list.Env = e.env()
		out, err := list.Output()
		if err != nil || bytes.Count(out, []byte("\n")) != 1 || !bytes.Contains(out, fmt.Appendf(nil, `"state":"current","current":true,"entries":%d,`, n)) {
			t.Errorf("%d rows: %v\n%s", n, err, out)
		}
	}
}
