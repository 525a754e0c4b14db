package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/sdk"
)

const reviewFile = `
knowledge "k" {
  source { path = "rows.tsv" }
  source {
    path     = "reviewed.jsonl"
    reviewed = true
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    mode  = "dense"
    top_k = 1
  }
  sample "knn" { use = "neighbours" }
  elect "e" {
    use  = "soft"
    flag = "answer == 'gone'"
  }
}
`

// reviewing is a process of racflow review, with the calls of its page.
type reviewing struct {
	*exec.Cmd
	t           *testing.T
	base, token string
	said        *bufio.Reader
}

func startReview(t *testing.T, dir string, args ...string) *reviewing {
	t.Helper()
	r := &reviewing{Cmd: racflow(t, dir, append([]string{"review", "--reviewer", "Ada"}, args...)...), t: t}
	stderr, err := r.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, r.Cmd)
	r.said = bufio.NewReader(stderr)
	readUntil(t, r.said, func(line string) (found bool) {
		r.base, r.token, found = strings.Cut(strings.TrimSpace(line), "/#")
		return found
	})
	return r
}

// readUntil reads lines until is accepts one.
func readUntil(t *testing.T, from *bufio.Reader, is func(line string) bool) {
	t.Helper()
	var said strings.Builder
	for found := false; !found; {
		line, err := from.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("%v: %s", err, &said)
		}
		found = is(line)
	}
}

// call calls the server as its page does.
func (r *reviewing) call(path, body string, to any) {
	r.t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+r.token)
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, to)
	}
	if err != nil || a.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %v, status %d: %s", path, err, a.StatusCode, text)
	}
}

// shownCase holds the parts of a case that the tests need.
type shownCase struct {
	ID, Text, Answer, Row string
	Items, Why            []string
	Suggestions           []string
}

func (r *reviewing) cases() []shownCase {
	r.t.Helper()
	var q struct{ Cases []shownCase }
	r.call("/api/queue", "", &q)
	return q.Cases
}

// finish ends the review on the page, and returns the command's final output.
func (r *reviewing) finish() string {
	r.t.Helper()
	r.call("/api/finish", "{}", &struct{}{})
	rest, _ := io.ReadAll(r.said)
	if err := r.Wait(); err != nil {
		r.t.Fatalf("%v: %s", err, rest)
	}
	return string(rest)
}

// answersIn returns the answers in a file of results, by id.
func answersIn(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range jsonLines[struct{ ID, Answer string }](t, readFile(t, "", path)) {
		all[r.ID] = r.Answer
	}
	return all
}

// TestReviewTeaches: a label decided on the page is on the disk at once, and survives a kill of the
// review. It is the answer of the next run, in which only what depends on it is answered anew.
func TestReviewTeaches(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p.hcl", reviewFile)
	write(t, dir, "rows.tsv", "id\ttext\tlabel\nr1\tI lost my card\tlost\nr2\tthe card is gone\tgone\nr3\twhere is my parcel\tparcel\n"+
		"r4\tthe parcel did not come\tparcel\nr5\tlost my card at home\tlost\nr6\tparcel did come late\tparcel\nr7\ta thing of thanks\tlost\nr8\ta word of praise\tlost\n")
	write(t, dir, "items.tsv", "id\ttext\na\tI lost my card\nb\twhere is the parcel\nc\tmy card is gone\nd\tMy  card is gone\n")
	must(t, racflow(t, dir, "run", "--output", "one.jsonl", "p.hcl"))
	if got := answersIn(t, filepath.Join(dir, "one.jsonl")); got["c"] != "gone" || got["b"] != "parcel" {
		t.Fatalf("the first run answers %v", got)
	}

	r := startReview(t, dir, "newest")
	cases := r.cases()
	if len(cases) != 1 || cases[0].Text != "my card is gone" || strings.Join(cases[0].Items, " ") != "c d" || cases[0].Answer != "gone" || cases[0].Suggestions[0] != "gone" {
		t.Fatalf("to decide: %+v", cases)
	}
	var whole struct {
		Details struct {
			Votes []struct{ Voter string }
			Lists []struct {
				Candidates []struct{ Text, Label string }
			}
		}
	}
	r.call("/api/case?id="+cases[0].ID, "", &whole)
	if d := whole.Details; len(d.Votes) == 0 || len(d.Lists) != 1 || len(d.Lists[0].Candidates) != 1 || d.Lists[0].Candidates[0].Label != "gone" {
		t.Errorf("beside it: %+v", d)
	}
	r.call("/api/decide", `{"case":"`+cases[0].ID+`","label":"lost","reviewer":"Ada","page":"1"}`, &struct{}{})
	if err := r.Process.Kill(); err != nil { // nothing waits for the end
		t.Fatal(err)
	}
	_ = r.Wait()

	r = startReview(t, dir, "run-000001")
	said := r.finish()
	for _, want := range []string{"1 of 1 case decided, in reviewed.jsonl\nthen answer anew", "  racflow run p.hcl --output=one.jsonl --overwrite\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("the end does not say %q:\n%s", want, said)
		}
	}

	before := answersIn(t, filepath.Join(dir, "one.jsonl"))
	_, command, _ := strings.Cut(said, "\n  racflow ")
	if said := must(t, racflow(t, dir, strings.Fields(command)...)); !strings.Contains(said, "9 entries, 1 embedded") || !strings.Contains(said, "2 decided by people; results") {
		t.Errorf("the next run says %s", said)
	}
	after := answersIn(t, filepath.Join(dir, "one.jsonl"))
	if after["c"] != "lost" || after["d"] != "lost" || after["a"] != before["a"] || after["b"] != before["b"] {
		t.Errorf("before %v, after %v", before, after)
	}
	if said := must(t, racflow(t, dir, "review", "newest")); !strings.Contains(said, "there is nothing to decide") {
		t.Errorf("what was decided is doubtful: %s", said)
	}
}

// TestReviewOfFindings: a row whose label contradicts another row is dropped on the page. Doctor
// finds nothing once the file has the printed lines.
func TestReviewOfFindings(t *testing.T) {
	dir := t.TempDir()
	const lines = "  source {\n    path     = \"reviewed.jsonl\"\n    reviewed = true\n  }\n"
	write(t, dir, "p.hcl", strings.Replace(reviewFile, lines, "", 1))
	write(t, dir, "rows.tsv", "text\tlabel\nI lost my card\tlost\nthe card is gone\tgone\ni LOST my card\tgone\n")
	write(t, dir, "items.tsv", "id\ttext\na\tparcel\n")
	r := startReview(t, dir, "--findings", "--votes", "0", "p.hcl")
	cases := r.cases()
	if len(cases) != 2 || cases[1].Text != "i LOST my card" || cases[1].Row == "" || cases[1].Answer != "gone" || cases[1].Why[0] != `the same text has the label "lost" in `+filepath.Join(dir, "rows.tsv")+":2" {
		t.Fatalf("to decide: %+v", cases)
	}
	r.call("/api/decide", `{"case":"`+cases[1].ID+`","drop":true,"reviewer":"Ada","page":"1"}`, &struct{}{})
	if said := r.finish(); !strings.Contains(said, "1 of 2 cases decided, in reviewed.jsonl\nadd to knowledge \"k\" in p.hcl:\n\n"+lines) {
		t.Errorf("the end says %s", said)
	}
	write(t, dir, "p.hcl", reviewFile)
	if said := must(t, racflow(t, dir, "doctor", "--votes", "0", "p.hcl")); strings.Contains(said, "with different labels") {
		t.Errorf("the row is still there: %s", said)
	}
}

func TestReviewRefuses(t *testing.T) {
	dir := folder(t, map[string]string{
		"p.hcl": reviewFile, "rows.tsv": "text\tlabel\nI lost my card\tlost\n", "items.tsv": "text\nparcel\n",
	})
	for name, test := range map[string]struct{ args, want string }{
		"nothing named":       {"", "name one run, or newest, or a pipeline file with --findings"},
		"no run":              {"newest", "no run is kept"},
		"another run":         {"run-000007", "there is no run run-000007"},
		"a file":              {"p.hcl", "p.hcl is a file: --findings reviews"},
		"no such knowledge":   {"--findings --knowledge other p.hcl", `searches no knowledge "other" that is made of rows`},
		"a number below zero": {"--findings --votes=-1 p.hcl", "--votes: it is a number of rows"},
		"none to pick":        {"--next 0 newest", "--next: it is a number of texts, at least 1"},
		"to pick of findings": {"--next 5 --findings p.hcl", "--next picks texts of a run"},
	} {
		said, err := racflow(t, dir, append([]string{"review"}, strings.Fields(test.args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(said), test.want) {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// TestReviewNext: the page has the texts that represent most other texts, sure or not. It leaves out
// texts that the knowledge has, near repetitions, and texts that were decided since the run.
func TestReviewNext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "p.hcl", strings.Replace(reviewFile, "gone", "nothing", 1)) // flags no item
	write(t, dir, "rows.tsv", "text\tlabel\nI lost my card\tlost\nwhere is my parcel\tparcel\n")
	write(t, dir, "items.tsv", "id\ttext\na\tI  LOST my card\nb\tplease play some quiet jazz music tonight\nc\tplease play some quiet jazz music tonight!\n"+
		"d\tplay some loud jazz music\ne\tplay jazz music tonight\nf\tumbrellas\ng\tsome  quiet jazz music\nh\tsome quiet jazz music\n")
	must(t, racflow(t, dir, "run", "--output", "one.jsonl", "p.hcl"))
	if said := must(t, racflow(t, dir, "review", "newest")); !strings.Contains(said, "there is nothing to decide") {
		t.Errorf("the answers are doubtful: %s", said)
	}

	items := func(cases []shownCase) (all []string) {
		for _, c := range cases {
			all = append(all, strings.Join(c.Items, ""))
		}
		return all
	}
	r := startReview(t, dir, "newest", "--next", "1")
	first := r.cases()
	if len(first) != 1 || !strings.Contains(first[0].Text, "jazz") || !strings.HasPrefix(first[0].Why[0], "it speaks for ") || len(first[0].Suggestions) == 0 {
		t.Fatalf("to decide: %+v", first)
	}
	r.call("/api/decide", `{"case":"`+first[0].ID+`","label":"music","new":true,"reviewer":"Ada","page":"1"}`, &struct{}{})
	if said := r.finish(); !strings.Contains(said, "1 of 1 case decided") {
		t.Errorf("the end says %s", said)
	}

	r = startReview(t, dir, "newest", "--next", "50")
	then := items(r.cases())
	r.finish()
	all := strings.Join(append(items(first), then...), " ")
	if strings.Contains(all, "a") || strings.Contains(all, "b") == strings.Contains(all, "c") || strings.Count(all, "gh") != 1 || then[0] != "f" || len(strings.Fields(all)) != 5 {
		t.Errorf("picked: %s, then %s", items(first), then)
	}

	write(t, dir, "rows.tsv", "text\tlabel\nI lost my card\tlost\n")
	must(t, racflow(t, dir, "run", "--output", "two.jsonl", "p.hcl"))
	if _, _, said := ran(t, racflow(t, dir, "review", "run-000001", "--next", "1")); !strings.Contains(said, "racflow run answers anew") {
		t.Errorf("with another knowledge it says %s", said)
	}
}

// A run with a secret needs it again, and the printed command cannot contain it.
func TestReviewNamesSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	q := review.NewQueue(path, "run-000001", []review.Case{{Text: "a"}}, []string{"x"}, sdk.LabelForm{})
	if _, err := q.Decide(review.Request{Case: q.Cases()[0].ID, Label: "x", Reviewer: "Ada"}); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	is := &review.Review{Queue: q, File: "p.hcl", Manifest: journal.Manifest{ID: "run-000001", Command: &journal.ManifestCommand{Withheld: []string{"key"}}}}
	if err := reportReview(&said, is, stateDir); err != nil || !strings.HasSuffix(said.String(), "\nwith what the run was given for key, which is a secret and not kept\n") {
		t.Errorf("%v: %s", err, &said)
	}
}
