package report

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/measure/plan"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A plan lists the permissions of each third party's plugin, as text and as JSON.
func TestPlugins(t *testing.T) {
	what := &plan.Plan{File: &pipeline.File{}, Pipeline: &pipeline.Pipeline{Memory: 6 << 30}, Plugins: []plan.Plugin{
		{
			Program: program.Program{Name: "mine", Path: "/store/racflow-plugin-mine", Version: "1.2.3", Origin: program.Locked,
				Allow: program.Allow{Read: []string{"/models"}, Write: []string{"/out"}, Hosts: []string{"a.example.com:443", "*.example.org:80"}}},
			Hash: "sha256:12", Stages: []string{"rerank.r", "sample.s"}, Memory: map[string]int64{"sample.s": 2 << 30}, Gaps: []string{"it can send signals"},
		},
		{Program: program.Program{Name: "own", Path: "/dist/racflow-plugin-own", Origin: program.Linked, Project: "/project\x1b[2J", Allow: program.Allow{Unconfined: true}}, Hash: "tree:34", Stages: []string{"elect.e"}},
		{Program: program.Program{Name: "plain", Path: "/p", Origin: program.Given}, Hash: "sha256:56", Stages: []string{"embed.k"}},
	}}
	var text strings.Builder
	if err := (planned{what}).writePlugins(&text); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(` {2,}`).ReplaceAllString(text.String(), "  ")
	const want = `
PLUGIN mine  rerank.r, sample.s
  program  /store/racflow-plugin-mine
  origin  1.2.3, locked with the file
  hash  sha256:12
  reads  the system's programs and libraries, its own folders, /models
  writes  its own folders, /out
  network  a.example.com:443, *.example.org:80
  memory  2.0 GiB of sample.s
  not enforced  it can send signals: this system cannot keep it from that

PLUGIN own  elect.e
  program  /dist/racflow-plugin-own
  origin  in development, linked from /project
  hash  tree:34
  not confined  it reads, changes and reaches whatever you can
  memory  any

PLUGIN plain  embed.k
  program  /p
  origin  in development, given by a folder
  hash  sha256:56
  reads  the system's programs and libraries, its own folders
  writes  its own folders
  network  none
  memory  any

All processes together may hold 6.0 GiB.
`
	if got = strings.ReplaceAll(got, "\uFFFD[2J", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text.Reset()
	if err := PlanJSON(&text, what); err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Memory  int64
		Plugins []pluginJSON
	}
	if err := json.Unmarshal([]byte(text.String()), &shown); err != nil {
		t.Fatal(err)
	}
	first := pluginJSON{
		Name: "mine", Version: "1.2.3", Origin: "locked", Program: "/store/racflow-plugin-mine", Hash: "sha256:12", Stages: []string{"rerank.r", "sample.s"}, Confined: true,
		Read: []string{"/models"}, Write: []string{"/out"}, Network: []string{"a.example.com:443", "*.example.org:80"}, Memory: map[string]int64{"sample.s": 2 << 30}, NotEnforced: []string{"it can send signals"},
	}
	must.Equal(t, "the first as JSON", first, shown.Plugins[0])
	must.Equal(t, "memory, number of plugins, whether the second is confined", []any{int64(6 << 30), 3, false}, []any{shown.Memory, len(shown.Plugins), shown.Plugins[1].Confined})
}
