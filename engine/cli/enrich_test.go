package cli

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

const enrichedPipeline = `
variable "url" {}
limit "llm" { concurrency = 4 }
knowledge "docs" {
  source { path = "docs" }
  chunk {
    use = "recursive"
    config {
      size    = 30
      overlap = 0
    }
  }
  enrich "contextualize" {
    use     = "context"
    limit   = limit.llm
    retries = 1
    price {
      input  = 3
      cached = 0.3
      output = 15
    }
    config {
      model    = "test"
      base_url = var.url
      api_key  = secret("ENRICH_KEY")
    }
  }
  embed {
    use = "hashing"
    config { dimension = 64 }
  }
  store { use = "local" }
}
pipeline "find" {
  input { path = "questions.tsv" }
  retrieve "near" {
    from  = knowledge.docs
    top_k = 3
  }
}
`

const enrichKey = "sk-enrich-hush"

// handbooks is a folder of documents that a model behind a server enriches.
type handbooks struct {
	dir    string
	server *modelserver.Server
	refuse atomic.Value // requests with this text are answered with 400; empty: none
}

func newHandbooks(t *testing.T) *handbooks {
	t.Helper()
	l := &handbooks{dir: t.TempDir()}
	l.refuse.Store("")
	l.server = modelserver.Serve(t, modelserver.Options{
		Key: enrichKey,
		Answer: func(a modelserver.Ask, _ int) string {
			return "It is from the handbook of a zebrafish farm, on " + paragraph(a) + "."
		},
		Refuse: func(a modelserver.Ask) bool {
			last := a.Messages[len(a.Messages)-1].Content
			refuse := l.refuse.Load().(string)
			return refuse != "" && strings.Contains(last, refuse)
		},
	})
	write(t, l.dir, "p.hcl", enrichedPipeline)
	write(t, l.dir, "questions.tsv", "id\ttext\nq1\tzebrafish\n")
	for i := range 6 {
		write(t, l.dir, fmt.Sprintf("docs/%d.txt", i), l.text(i, 4+i))
	}
	return l
}

// paragraph names the paragraph that a model is asked about: no two passages have the same note.
func paragraph(a modelserver.Ask) string {
	return regexp.MustCompile(`\d+ of text \d+`).FindString(a.Messages[len(a.Messages)-1].Content)
}

// text returns a document with a number of paragraphs.
func (l *handbooks) text(number, paragraphs int) string {
	var b strings.Builder
	for i := range paragraphs {
		fmt.Fprintf(&b, "Paragraph %d of text %d says that the water is changed every %d days, and the light goes off %d hours later.\n\n", i, number, i+2, i+3)
	}
	return b.String()
}

func (l *handbooks) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := racflow(t, l.dir, append(args, "-var", "url="+l.server.URL, "p.hcl")...)
	c.Env = append(os.Environ(), "ENRICH_KEY="+enrichKey)
	return c
}

// do runs racflow to its end. It returns the output and the number of calls.
func (l *handbooks) do(t *testing.T, args ...string) (code, calls int, stdout, stderr string) {
	t.Helper()
	before := l.server.Calls()
	code, stdout, stderr = ran(t, l.command(t, args...))
	if strings.Contains(stdout+stderr, "hush") {
		t.Errorf("the key is reported:\n%s%s", stdout, stderr)
	}
	return code, l.server.Calls() - before, stdout, stderr
}

// count returns the number that a pattern finds in a report.
func count(t *testing.T, text, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %q in\n%s", pattern, text)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A refused passage is stored unenriched, reported, and tried again.
func TestEnrichmentThatFails(t *testing.T) {
	l := newHandbooks(t)
	l.refuse.Store("Paragraph 2 of text 1")
	for again := range 2 {
		code, calls, _, stderr := l.do(t, "run")
		if code != exitItemsFailed || !regexp.MustCompile(`knowledge "docs": 1 passage without what an enrichment adds, which the next build tries again; the first because .*1.txt: chunk [0-9]+: enrich.contextualize: .*refused, as the test says`).MatchString(stderr) {
			t.Errorf("exit code %d\n%s", code, stderr)
		}
		chunks := count(t, stderr, `documents, ([0-9]+) entries`)
		if again == 0 && calls != chunks || again > 0 && calls != 1 {
			t.Errorf("%d calls for %d chunks\n%s", calls, chunks, stderr)
		}
	}
	l.refuse.Store("")
	code, calls, _, stderr := l.do(t, "run")
	if code != 0 || calls != 1 {
		t.Errorf("once it works: exit code %d, %d calls\n%s", code, calls, stderr)
	}
	if code, calls, _, stderr = l.do(t, "run"); code != 0 || calls != 0 || !strings.Contains(stderr, "up to date") {
		t.Errorf("again: exit code %d, %d calls\n%s", code, calls, stderr)
	}
}

// A killed build keeps the answers so far, and the next one asks about no passage twice.
func TestEnrichAfterKill(t *testing.T) {
	l := newHandbooks(t)
	half := make(chan struct{})
	var once sync.Once
	l.server = modelserver.Serve(t, modelserver.Options{
		Latency: 10 * time.Millisecond,
		Answer: func(a modelserver.Ask, _ int) string {
			if a.Number == 20 {
				once.Do(func() { close(half) })
			}
			return "It is from a handbook, on " + paragraph(a) + "."
		},
	})
	c := l.command(t, "run")
	start(t, c)
	<-half
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	code, _, stdout, stderr := l.do(t, "run")
	chunks := count(t, stderr, `documents, ([0-9]+) entries`)
	if calls := l.server.Calls(); code != 0 || chunks != 39 || calls > chunks+4 {
		t.Errorf("exit code %d, %d calls for %d chunks\n%s%s", code, calls, chunks, stdout, stderr)
	}
	if code, calls, _, stderr := l.do(t, "run"); code != 0 || calls != 0 || !strings.Contains(stderr, "39 entries, up to date") {
		t.Errorf("again: exit code %d, %d calls\n%s", code, calls, stderr)
	}
}
