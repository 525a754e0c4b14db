package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
)

func file(t *testing.T, text string) host.ReplayFile {
	t.Helper()
	request, err := host.NewReplayRequest(stagepb.Stage_Sample_FullMethodName, &stagepb.SampleRequest{Rows: &stagepb.Rows{N: 1, Text: []string{text}}},
		func(s string) string { return strings.ReplaceAll(s, "hush", "(secret)") })
	if err != nil {
		t.Fatal(err)
	}
	return host.ReplayFile{Plugin: "mine", Version: "1.2.3", Kind: sdk.KindSample, Stage: "mine", Config: []byte("{}"), Request: request, How: "it ended"}
}

// No more files are kept than a run may have, and a resumed run begins no second count.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "replay")
	var files host.Replays
	if path, err := files.Add("sample.mine", file(t, "before there is a folder")); path != "" || err != nil {
		t.Errorf("got %q, %v", path, err)
	}
	files.Into(dir)
	if _, err := files.Add("sample.mine", file(t, "the first says hush")); err != nil {
		t.Fatal(err)
	}
	path, err := files.Add("sample.mine", file(t, "the second"))
	if want := filepath.Join(dir, "sample.mine-2.json"); path != want || err != nil {
		t.Errorf("got %q, %v", path, err)
	}
	if path, err := files.Add("sample.mine", file(t, strings.Repeat("x", 2<<20))); path != "" || err != nil {
		t.Errorf("a large one: %q, %v", path, err)
	}
	var resumed host.Replays
	resumed.Into(dir)
	for i := range 30 {
		path, err := resumed.Add("rerank.other", file(t, fmt.Sprint(i)))
		if full := i >= host.MaxReplays-2; err != nil || (path == "") != full {
			t.Fatalf("after %d: %q, %v", i, path, err)
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != host.MaxReplays {
		t.Errorf("%d files, %v", len(all), err)
	}
	f, err := host.ReadReplay(filepath.Join(dir, "sample.mine-1.json"))
	if err != nil || f.Plugin != "mine" || f.How != "it ended" {
		t.Fatalf("got %+v, %v", f, err)
	}
	message, reply, err := f.Request.Decode()
	if _, ok := reply.(*stagepb.RowsReply); !ok || err != nil || !proto.Equal(message, &stagepb.SampleRequest{Rows: &stagepb.Rows{N: 1, Text: []string{"the first says (secret)"}}}) {
		t.Errorf("got %v, %v, %v", message, reply, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for content, want := range map[string]string{
		"":   "is not a request to replay",
		"{}": "it names no stage",
		`{"kind": "sample", "stage": "x", "request": {"method": "/racflow.stage.v2.Stage/Nothing", "message": {}}}`:            "none that can be called again",
		`{"kind": "sample", "stage": "x", "request": {"method": "/racflow.stage.v2.Stage/Fit", "message": {}}}`:                "none that can be called again",
		`{"kind": "sample", "stage": "x", "request": {"method": "/racflow.stage.v2.Stage/Sample", "message": {"nothing": 1}}}`: "the message of",
	} {
		path := filepath.Join(t.TempDir(), "f.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := host.ReadReplay(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", content, err)
		}
	}
}
