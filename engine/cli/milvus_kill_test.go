package cli

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/commonpb"
	"github.com/milvus-io/milvus-proto/go-api/v2/milvuspb"
	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

// milvusRun returns a run of the pipeline in a folder, for one item.
func milvusRun(t *testing.T, e *milvusEngine, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := racflow(t, dir, append([]string{"run", "--limit", "1", "--input", "items.tsv"}, append(args, "p.hcl")...)...)
	c.Env = e.env()
	stderr := &bytes.Buffer{}
	c.Stderr = stderr
	return c, stderr
}

// TestMilvusKilledInABuild kills the server with signal 9 while knowledge is built, beside a complete
// index version.
func TestMilvusKilledInABuild(t *testing.T) {
	const entries = 12_000
	for _, test := range []struct {
		name, retry string
		back        bool
	}{
		{"it comes back", "2m", true},
		{"it stays away", "2s", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := startEngine(t)
			dir := milvusFolder(t, 100, 10)
			if c, stderr := milvusRun(t, e, dir); c.Run() != nil {
				t.Fatalf("the first build: %s", stderr)
			}
			write(t, dir, "rows.tsv", rows(entries))
			before := e.countRows()
			c, stderr := milvusRun(t, e, dir, "-var", "retry="+test.retry, "-var", "analyzer=code")
			start(t, c)
			for until := time.Now().Add(time.Minute); e.countRows() < before+500; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("no rows are written: %s", stderr)
				}
			}
			e.kill()
			killed := time.Now()
			if test.back {
				time.Sleep(2 * time.Second)
				e.start()
			}
			err := c.Wait()
			took := time.Since(killed)
			t.Logf("%v after the server was killed: %v\n%s", took, err, stderr)
			if test.back {
				if err != nil || !strings.Contains(stderr.String(), "12000 entries") {
					t.Errorf("the build did not complete")
				}
			} else {
				if code := c.ProcessState.ExitCode(); code != 1 || took > 30*time.Second {
					t.Errorf("exit code %d after %v", code, took)
				}
				if said := stderr.String(); !strings.Contains(said, e.address()) || !strings.Contains(said, "retry_time") {
					t.Errorf("no reason or no advice")
				}
				e.start()
				write(t, dir, "rows.tsv", rows(100))
				c, stderr := milvusRun(t, e, dir)
				if out, err := c.Output(); err != nil || !strings.Contains(stderr.String(), "100 entries, up to date") || !strings.Contains(string(out), `"answer":"topic`) {
					t.Errorf("the generation from before: %v\n%s%s", err, out, stderr)
				}
				write(t, dir, "rows.tsv", rows(entries))
			}
			c, stderr = milvusRun(t, e, dir, "-var", "analyzer=code")
			if err := c.Run(); err != nil || !strings.Contains(stderr.String(), "12000 entries") {
				t.Errorf("the build afterwards: %v\n%s", err, stderr)
			}
			if test.back && !strings.Contains(stderr.String(), "up to date") {
				t.Errorf("it is built again: %s", stderr)
			}
		})
	}
}

// countRows counts the rows of all readable collections.
func (e *milvusEngine) countRows() (n int64) {
	e.t.Helper()
	m, err := client.NewClient(e.t.Context(), client.Config{Address: e.address()})
	if err != nil {
		e.t.Fatal(err)
	}
	defer m.Close()
	service := m.(*client.GrpcClient).Service
	all, err := service.ShowCollections(e.t.Context(), &milvuspb.ShowCollectionsRequest{})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, name := range all.GetCollectionNames() {
		reply, err := service.Query(e.t.Context(), &milvuspb.QueryRequest{CollectionName: name, OutputFields: []string{"count(*)"}, ConsistencyLevel: commonpb.ConsistencyLevel_Strong})
		if fields := reply.GetFieldsData(); err == nil && len(fields) == 1 {
			n += fields[0].GetScalars().GetLongData().GetData()[0]
		}
	}
	return n
}
