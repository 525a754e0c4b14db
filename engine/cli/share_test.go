//go:build linux

package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// sharedFile asks a model about each item. Its limit and its answers are shared.
const sharedFile = `variable "url" {}
limit "llm" {
  concurrency = 3
  shared      = "team"
}
cache { shared = "answers" }
knowledge "utterances" {
  source { path = "rows.tsv" }
  embed  { use = "hashing" }
}
pipeline "p" {
  input { path = "items.tsv" }
  batch = 8
  retrieve "near" {}
  prompt "ask" { use = "completion" }
  sample "llm" {
    use   = "openai"
    limit = limit.llm
    config {
      model    = "some"
      base_url = var.url
      probe    = false
    }
  }
  elect "label" {}
}
`

// TestShared has two runs with the same items at a time, which know of each other by servers alone: each item is paid for once, and
// the limit holds for both together. Afterwards a third run, elsewhere, asks nothing.
func TestShared(t *testing.T) {
	leaveTo(t, "command", "package sharing shows it in one process")
	var items strings.Builder
	items.WriteString("id\ttext\n")
	const n = 60
	for i := range n {
		fmt.Fprintf(&items, "q%d\twhere is my order (number %06d)\n", i, i)
	}
	dir := folder(t, map[string]string{"p.hcl": sharedFile, "rows.tsv": "text\tlabel\nwhere is my order\torder_status\nmy money back\trefund_status\n", "items.tsv": items.String()})
	model := modelserver.Serve(t, modelserver.Options{Latency: 50 * time.Millisecond, Answer: labelOf})
	url := natstest.Start(t, 1).URL()
	start := func(name string) *process {
		return begin(t, racflow(t, dir, "run", "--state", name+".state", "--output", name+".jsonl", "--share", url, "-var", "url="+model.URL, "p.hcl"))
	}
	a, b := start("a"), start("b")
	a.good(slow)
	b.good(slow)
	if calls := model.Calls(); calls != n {
		t.Errorf("%d calls of the model for %d items", calls, n)
	}
	if most := model.MostAtOnce(); most > 3 {
		t.Errorf("%d calls at a time, 3 may be", most)
	}
	start("c").good(slow)
	if calls := model.Calls(); calls != n {
		t.Errorf("the model was called %d times after everything was answered", calls-n)
	}
	sameOutput(t, dir, "a", "b")
	sameOutput(t, dir, "a", "c")
}
