package cli

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// buildsFile is a pipeline whose knowledge has a generation for each dimension.
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

// TestMilvusKilledAtAWrite ends racflow with kill -9, and cuts its stages off from the server, at one write
// of a build after another: from the first one, which makes a collection, to beyond the last one. The
// generation from before answers each time; the next run completes the build, and answers as one that
// nobody has killed.
func TestMilvusKilledAtAWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("it is a build for each write; TestMilvusKilledInABuild ends one")
	}
	e := engineFor(t)
	proxy := startProxy(t, e)
	dir := folder(t, map[string]string{"p.hcl": buildsFile, "rows.tsv": rows(300), "items.tsv": rows(5)})
	run := func(at *milvusEngine, dimension int) (answers, reported string) {
		t.Helper()
		c, _ := buildRun(t, dir, at, dimension)
		return good(t, c)
	}
	dimension := 64
	before, _ := run(e, dimension)
	killed := 0
	for at := 0; ; at += 1 + at/3 { // the first ones differ most
		cut := proxy.cutAfter(at)
		c, stderr := buildRun(t, dir, proxy.engine, dimension+1)
		ended := make(chan error, 1)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- c.Wait() }()
		select {
		case <-cut:
			_ = c.Process.Kill()
			<-ended
			killed++
		case err := <-ended:
			if err != nil || killed < 5 {
				t.Errorf("a build that is left alone: %v after %d that were killed\n%s", err, killed, stderr)
			}
			t.Logf("%d builds were killed, the last one at write %d at most", killed, at)
			return
		}
		if answers, reported := run(e, dimension); answers != before || !strings.Contains(reported, "300 entries, up to date") {
			t.Errorf("killed at write %d: the generation from before answers\n%s, was\n%s\n%s", at, answers, before, reported)
		}
		dimension++
		after, reported := run(e, dimension)
		if !strings.Contains(reported, "300 entries") || !sameAnswers(before, after) {
			t.Errorf("killed at write %d: the next build answers\n%s\n%s", at, after, reported)
		}
		again, reported := run(e, dimension)
		if !strings.Contains(reported, "300 entries, up to date") || again != after {
			t.Errorf("killed at write %d: it is built again: %s", at, reported)
		}
		before = after
	}
}

// buildRun is a run over the file, with an embedder of that dimension.
func buildRun(t *testing.T, dir string, at *milvusEngine, dimension int, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, dir, append([]string{"run", "--format", "tsv", "-var", fmt.Sprint("dimension=", dimension)}, append(args, "p.hcl")...)...)
	c.Env = at.env()
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	return c, stderr
}

// sameAnswers compares the items and their answers, not the rounded figures.
func sameAnswers(a, b string) bool {
	lines, others := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range lines {
		if len(lines) != len(others) || answerOf(lines[i]) != answerOf(others[i]) {
			return false
		}
	}
	return true
}

// TestMilvusTwoBuilds has two processes with state folders of their own build the same knowledge at once, and
// then change it at once: both answer, alike, from one generation with all entries.
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
