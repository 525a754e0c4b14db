package cli

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// chunkOf returns the passage to contextualize in a request; empty: the request is another one.
func chunkOf(a modelserver.Ask) string {
	_, chunk, _ := strings.Cut(a.Text(), "<chunk>")
	chunk, _, _ = strings.Cut(chunk, "</chunk>")
	return strings.TrimSpace(chunk)
}

// documentOf returns the part of the document in a request.
func documentOf(a modelserver.Ask) string {
	for _, m := range a.Messages {
		if strings.Contains(m.Content, "</document>") && !strings.Contains(m.Content, "</chunk>") {
			return m.Content
		}
	}
	return ""
}

// TestContextual runs contextual.hcl over the example documents with a model: the model
// contextualizes every chunk once, document by document, and answers with its sources.
func TestContextual(t *testing.T) {
	long(t)
	const latency = 20 * time.Millisecond
	const fact = "It waits at most 30 seconds for the consumers"
	cite := regexp.MustCompile(`<passage (\d+)>`)
	server := modelserver.Serve(t, modelserver.Options{Latency: latency, Answer: func(a modelserver.Ask, _ int) string {
		if chunkOf(a) != "" {
			return fmt.Sprintf("It is from the manual of a queue, part %x.", sha256.Sum224([]byte(chunkOf(a)))) // a different note for each
		}
		// The answer cites the passage with the fact.
		before, _, found := strings.Cut(strings.Join(strings.Fields(a.Whole()), " "), fact)
		if !found {
			return "The passages do not answer this."
		}
		numbers := cite.FindAllStringSubmatch(before, -1)
		return "30 seconds [" + numbers[len(numbers)-1][1] + "]."
	}})
	dir := t.TempDir()
	docs := filepath.Join(dir, "docs")
	if err := os.CopyFS(docs, os.DirFS("../../examples/docs/quern")); err != nil {
		t.Fatal(err)
	}
	path := absolute(t, "../../pipelines/contextual.hcl")
	run := func(verb string, args ...string) (stdout, stderr string) {
		t.Helper()
		flags := []string{verb, "-var", "docs=" + docs, "-var", "embedder=hashing", "-var", "model=test-model", "-var", "base_url=" + server.URL}
		return good(t, racflow(t, dir, append(append(flags, path), args...)...))
	}
	const question = "How long does the broker wait for consumers when it is shut down?"

	planned, _ := run("plan")
	if server.Calls() != 0 {
		t.Errorf("a plan made %d calls", server.Calls())
	}
	answer, stderr := run("ask", question)
	if !strings.HasPrefix(answer, "30 seconds [") || !strings.Contains(answer, "  reference/broker.md:") || !strings.Contains(answer, fact) {
		t.Errorf("answer\n%s\n%s", answer, stderr)
	}

	chunks := map[string][]modelserver.Ask{} // by document
	asked := 0
	for _, a := range server.Asks() {
		if chunkOf(a) != "" {
			chunks[documentOf(a)] = append(chunks[documentOf(a)], a)
			asked++
		}
	}
	if rest := server.Calls() - asked; rest != 1 {
		t.Errorf("%d calls beside those that contextualize, want 1", rest)
	}
	entries := regexp.MustCompile(`knowledge "docs": (\d+) documents, (\d+) entries`).FindStringSubmatch(stderr)
	if len(entries) != 3 || entries[1] != strconv.Itoa(len(chunks)) || entries[2] != strconv.Itoa(asked) || server.Doubled(1) != 0 {
		t.Errorf("%d chunks of %d documents contextualized, %d of them twice, of %q", asked, len(chunks), server.Doubled(1), entries)
	}
	for document, asks := range chunks {
		if document == "" {
			t.Fatalf("a request without the document before the chunk:\n%s", asks[0].Whole())
		}
		first := asks[0]
		for _, a := range asks[1:] {
			shared := len(first.Messages) - 1
			if len(a.Messages) != len(first.Messages) || a.Messages[0] != first.Messages[0] || a.Messages[shared-1] != first.Messages[shared-1] {
				t.Errorf("requests of one document begin differently")
			}
			if a.At.Sub(first.At) < latency {
				t.Errorf("a request was sent %v after the first of its document, which was not answered yet", a.At.Sub(first.At))
			}
		}
	}
	if want := regexp.MustCompile(`contextualize .*\b` + strconv.Itoa(asked) + `\b`); !want.MatchString(planned) {
		t.Errorf("the plan does not say %d:\n%s", asked, planned)
	}

	// The same again: nothing is asked. Then one document changes: only its chunks are asked about.
	calls := server.Calls()
	if again, _ := run("ask", question); again != answer || server.Calls() != calls {
		t.Errorf("asked %d times again\n%s", server.Calls()-calls, again)
	}
	if kept, _ := run("ask", "--offline", question); kept != answer || server.Calls() != calls {
		t.Errorf("offline: asked %d times\n%s", server.Calls()-calls, kept)
	}
	const changed = "guide/producers.md"
	write(t, docs, changed, readFile(t, docs, changed)+"\n## Priorities\n\nThere are none: use two lanes.\n")
	run("ask", question)
	for _, a := range server.Asks()[calls:] {
		if chunkOf(a) != "" && !strings.Contains(documentOf(a), "There are none: use two lanes.") {
			t.Errorf("asked about a document that did not change:\n%.300s", documentOf(a))
		}
	}
	if more := server.Calls() - calls; more < 3 || more > 8 {
		t.Errorf("%d calls for the document that changed", more)
	}

	// A renamed file is the same document, which names itself: nothing is asked about its chunks
	// again.
	calls = server.Calls()
	if err := os.Rename(filepath.Join(docs, changed), filepath.Join(docs, "guide", "senders.md")); err != nil {
		t.Fatal(err)
	}
	if _, stderr := run("ask", question); !strings.Contains(stderr, "contextualize: ") || !strings.Contains(stderr, " removed") {
		t.Errorf("the renamed file was not read:\n%s", stderr)
	}
	for _, a := range server.Asks()[calls:] {
		if chunkOf(a) != "" {
			t.Errorf("asked about a document that was renamed:\n%.300s", documentOf(a))
		}
	}

	// A question that the documents do not answer gets no answer, and the nearest passages are shown.
	if none, _ := run("ask", "Is there a client library for Rust?"); !strings.HasPrefix(none, "No answer: ") || !strings.Contains(none, "Nearest passages:\n\n 1  ") {
		t.Errorf("no answer:\n%s", none)
	}

	// All documents are in the prompt, in order, instead of a search.
	calls = server.Calls()
	whole, _ := run("ask", "-var", "whole=200000", question)
	last := server.Asks()[server.Calls()-1]
	if server.Calls() != calls+1 || !strings.Contains(whole, "  reference/broker.md:") || len(cite.FindAllString(last.Whole(), -1)) < asked || !strings.Contains(last.Text(), question) {
		t.Errorf("whole: %d calls\n%s", server.Calls()-calls, whole)
	}
}

// TestKeywords: a model names terms for every chunk. Searches find chunks by these terms, results do
// not show them, and the file also runs without a model.
func TestKeywords(t *testing.T) {
	long(t)
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Text(), "questions that this passage answers") {
			return "1. Who sings the zebulon song?\n2. Why?"
		}
		if strings.Contains(a.Text(), "keywords for this passage") && strings.Contains(a.Text(), "writes nothing") {
			return "- xylophone\n- quern"
		}
		return "- nothing special"
	}})
	dir, path := folder(t, map[string]string{
		"docs/a.md": "# A\n\nIt writes nothing.\n", "docs/b.md": "# B\n\nSomething else, and longer.\n",
		"ask.tsv": "id\ttext\tgold\n1\txylophone\ta.md\"writes nothing\"\n",
	}), absolute(t, "../../pipelines/keywords.hcl")
	run := func(verb string, args ...string) string {
		t.Helper()
		flags := []string{verb, "--input", "ask.tsv", "-var", "docs=docs", "-var", "embedder=hashing", "-var", "base_url=" + server.URL, path}
		return must(t, racflow(t, dir, append(flags, args...)...))
	}
	if out := run("run", "-var", "model="); server.Calls() != 0 || !strings.Contains(out, "enrich.keywords (keywords) is off") || !strings.Contains(out, "enrich.questions (questions) is off") {
		t.Errorf("%d calls without a model\n%s", server.Calls(), out)
	}
	for range 2 { // the second time nothing is asked
		out := run("run", "-var", "model=test-model")
		if server.Calls() != 4 || strings.Contains(out, "zebulon") || strings.Count(out, "xylophone") != 1 || !strings.Contains(out, `"candidates":[{"id":"a.md#0"`) {
			t.Errorf("%d calls\n%s", server.Calls(), out)
		}
	}
	if out := run("eval", "-var", "model=test-model", "--ablate", "enrich", "--k", "1"); !regexp.MustCompile(`(?m)^nothing +1\.0000 `).MatchString(out) || server.Calls() != 4 {
		t.Errorf("%d calls\n%s", server.Calls(), out)
	}
}
