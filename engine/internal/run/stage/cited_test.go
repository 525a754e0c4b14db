package stage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// reader is a language model of the test with fixed answers, which records its prompts.
type reader struct {
	answers map[string][]string // by question, one for each sample
	fails   string              // question on which it fails

	mu   sync.Mutex
	seen map[string]sdk.Prompt
	most int // most items in a call
}

func (m *reader) stage() sdk.Stage {
	return sdk.SampleStage("reader", "A voter of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return m, nil }, sdk.Reads(sdk.ColumnText, sdk.ColumnPrompts))
}

func (m *reader) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]sdk.Prompt{}
	}
	m.most = max(m.most, len(b.Items))
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if item.Text == m.fails {
			return nil, sdk.RowErrors{i: sdk.Invalid(errors.New("no"))}
		}
		if len(item.Prompts) == 0 {
			continue
		}
		m.seen[item.Text] = item.Prompts[0]
		for _, text := range m.answers[item.Text] {
			samples[i] = append(samples[i], sdk.Sample{Answers: []sdk.Answer{support.ReadAnswer(text, item.Prompts[0], support.AnswerOptions{})}})
		}
	}
	return samples, nil
}

// unlabelled removes the labels from the knowledge.
var unlabelled = []string{`source { path = "rows.tsv" }`, "source {\n  path  = \"rows.tsv\"\n  label = \"none\"\n}"}

const answering = `
	retrieve "near" {
	  from  = knowledge.k
	  top_k = 4
	}
	rerank "short"  { use = "shortest" }
	prompt "answer" {
	  use = "answer"
	  config { passages = 3 }
	}
	sample "llm" {
	  use    = "reader"
	  accept = "len(answer) < 200 and not (answer contains 'spam')"
	}
	elect "e" {
	  use  = "first"
	  flag = "answer contains '[2]'"
	}`

func readerCatalog(m *reader, more ...sdk.Stage) enginetest.Catalog {
	return runtest.Stages(append(more, m.stage(), (&shortest{}).stage())...)
}

func TestCitedAnswers(t *testing.T) {
	m := &reader{answers: map[string][]string{
		"fast car?":   {"So it is [2],\n\nand [1, 2]."},
		"green apple": {"no citation", "behind [9]", "an apple [1]", "an apple [1]"},
		"banana":      {"The passages do not answer this."},
		"train":       {"Nothing about any apple whatsoever here."},
		"pear":        {"That is a green apple.", "behind [9]"},
		"bus":         {"spam [1]"},
	}}
	r := runtest.Pipeline(t, readerCatalog(m), answering, unlabelled...)
	tests := []struct {
		question, answer, reason string
		agreement                float64
		flagged                  bool
		cites                    []int
	}{
		{question: "fast car?", answer: "So it is [2],\n\nand [1, 2].", agreement: 1, flagged: true, cites: []int{2, 1}},
		{question: "green apple", answer: "an apple [1]", agreement: 1, cites: []int{1}},
		{question: "banana", reason: "the passages do not answer this", agreement: 1},
		{question: "train", answer: "Nothing about any apple whatsoever here.", reason: "it cites no passage, and none shares most of its words", agreement: 1, flagged: true},
		{question: "pear", answer: "That is a green apple.", reason: "it cites no passage; those that are named share most of its words", agreement: 1, flagged: true, cites: []int{2, 1}},
		{question: "bus", reason: "no voter gave an acceptable answer"},
	}
	for _, test := range tests {
		got := runtest.Found(t, r, test.question)
		must.Equal(t, test.question, []any{(*outcome.Failure)(nil), test.answer, test.reason, test.agreement, test.flagged}, []any{got.Failure, got.Answer, got.Reason, got.Agreement, got.Flagged})
		shown := m.seen[test.question].Passages
		var cites []int
		for _, c := range got.Citations {
			cites = append(cites, c.Number)
			if c.Passage.ID != shown[c.Number-1] || c.Passage.Text == "" {
				t.Errorf("%s: %d is the passage %+v, the prompt showed %q", test.question, c.Number, c.Passage, shown)
			}
		}
		if !slices.Equal(cites, test.cites) {
			t.Errorf("%s: it cites %v, want %v", test.question, cites, test.cites)
		}
		if at := slices.IndexFunc(got.Votes, func(v result.Vote) bool { return v.Answer == test.answer && v.Accepted && v.Reason == "" }); test.answer != "" && at < 0 {
			t.Errorf("%s: the votes are %+v", test.question, got.Votes)
		}
		if votes := got.Votes; test.question == "green apple" && (len(votes) != 4 || votes[1].Accepted || votes[1].Reason != "it cites [9], which is none of the passages that it was given") {
			t.Errorf("the votes are %+v", votes)
		}
	}
}

// twice writes two prompts for an item, with the candidates in both orders.
type twice struct{}

func (twice) stage() sdk.Stage {
	return sdk.PromptStage("twice", "A prompt of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Prompter, error) { return twice{}, nil }, sdk.Reads(sdk.ColumnCandidates))
}

func (twice) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	out := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		var ids []string
		for _, c := range item.Candidates {
			ids = append(ids, c.ID)
		}
		out[i] = []sdk.Prompt{{Text: item.Text, Passages: ids}, {Text: item.Text, Passages: slices.Clone(ids)}}
		slices.Reverse(out[i][1].Passages)
	}
	return out, nil
}

// An answer cites the passages of its own prompt.
func TestCitationsOfTheSecondPrompt(t *testing.T) {
	m := &reader{answers: map[string][]string{"fast car": {"no citation", "it is so [1]"}}}
	body := strings.Replace(strings.Replace(answering, `use = "answer"
	  config { passages = 3 }`, `use = "twice"`, 1), `rerank "short"  { use = "shortest" }`, "", 1)
	got := runtest.Found(t, runtest.Pipeline(t, readerCatalog(m, twice{}.stage()), body, unlabelled...), "fast car")
	last := got.Candidates[len(got.Candidates)-1]
	if len(got.Citations) != 1 || got.Citations[0].Passage.ID != last.ID {
		t.Errorf("%q cites %+v, want %+v", got.Answer, got.Citations, last)
	}
}

// Answers that are labels keep their own word for no label, and cite nothing.
func TestLabelsCiteNothing(t *testing.T) {
	m := &reader{answers: map[string][]string{"fast car": {`{"label": "other"}`}, "slow bus": {`{"label": "vehicle"}`}}}
	body := strings.Replace(answering, `use = "answer"
	  config { passages = 3 }`, `use = "chat"
	  config { none = "other" }`, 1)
	r := runtest.Pipeline(t, readerCatalog(m), body)
	if got := runtest.Found(t, r, "fast car"); got.Reason != "the voters say that none of the labels fits" || got.Citations != nil {
		t.Errorf("got %+v", got)
	}
	if got := runtest.Found(t, r, "slow bus"); got.Answer != "vehicle" || got.Citations != nil {
		t.Errorf("got %+v", got)
	}
}

func TestKnowledgeWithoutLabels(t *testing.T) {
	const retrieve, elect = "retrieve \"near\" { from = knowledge.k }\n", "\nelect \"e\" { use = \"first\" }"
	reading := "prompt \"p\" { use = \"answer\" }\nsample \"llm\" { use = \"reader\" }"
	tests := []struct{ name, body, want string }{
		{name: "passages", body: retrieve + reading + elect},
		{name: "no voters", body: retrieve},
		{name: "a statistical voter", body: retrieve + reading + "\nsample \"knn\" { use = \"neighbours\" }" + elect, want: "so there is nothing to vote for, which sample.knn (neighbours) does; name the column"},
		{name: "a prompt with labels", body: retrieve + strings.Replace(reading, `"answer"`, `"chat"`, 1) + elect, want: "so prompt.p (chat) has none to choose from"},
		{name: "a rule", body: retrieve + reading + "\nelect \"e\" {\n use = \"first\"\n accept = \"answer in labels\"\n}", want: "so the accept rule of elect.e takes no answer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := runtest.Open(t, readerCatalog(&reader{}), run.Options{}, runtest.Files(test.body, runtest.Unlabelled...))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// If the whole knowledge is given, prompts differ only in the question, whatever stages are in
// between.
func TestWhole(t *testing.T) {
	m := &reader{answers: map[string][]string{}}
	var questions []string
	for i := range 200 {
		q := fmt.Sprintf("question %d?", i)
		questions, m.answers[q] = append(questions, q), []string{"It is so [6]."}
	}
	s := &shortest{}
	c := append(enginetest.Catalog{s.stage()}, readerCatalog(m)...)
	body := strings.Replace(answering, "top_k = 4", `top_k = 1
	  whole = "knowledge.tokens < 100 and knowledge.entries == 6"
	  keep  = "text != 'old train'"`, 1)
	body = strings.Replace(body, `{ use = "shortest" }`, "{\nuse = \"shortest\"\ntop_k = 2\n}", 1)
	r := runtest.PipelineWith(t, c, run.Options{Options: stage.Options{Lists: true}}, body, unlabelled...)
	results, totals := runtest.Taken(t, r, runtest.Feed(questions...))
	if totals.Answered != 0 || totals.Undecided != len(questions) {
		t.Fatalf("%+v: [6] is not among the five that keep leaves", totals)
	}
	// Rows without an id are named after their content, which gives this order.
	want := []string{"red apple", "yellow banana", "green apple", "slow bus", "fast car"}
	for _, result := range results {
		for _, list := range result.Lists {
			if got := texts(list.Candidates); !slices.Equal(got, want) {
				t.Fatalf("%s left %q, want %q", list.Stage, got, want)
			}
		}
	}
	if len(s.seen) > 0 {
		t.Errorf("the reranker was asked: %v", s.seen)
	}
	if m.most != 1 {
		t.Errorf("%d items in a call, each with all of the knowledge", m.most)
	}
	one := m.seen[questions[0]]
	if len(one.Passages) != 5 || !one.Messages[1].Shared {
		t.Fatalf("the prompt is %+v", one)
	}
	for _, q := range questions {
		p := m.seen[q]
		last := len(p.Messages) - 1
		if !slices.Equal(p.Messages[:last], one.Messages[:last]) || p.Messages[last].Text != q || !slices.Equal(p.Passages, one.Passages) {
			t.Fatalf("the prompt of %q is %+v", q, p)
		}
	}
	for _, stage := range totals.Stages {
		if strings.HasPrefix(stage.Stage, "embed.") || strings.HasPrefix(stage.Stage, "search.") {
			if stage.Rows != 0 {
				t.Errorf("%s was asked about %d rows", stage.Stage, stage.Rows)
			}
		}
	}
}

// If the rule does not hold, the knowledge is searched. With a whole knowledge, a statistical voter
// abstains.
func TestWholeOrNot(t *testing.T) {
	const body = `
	retrieve "near" {
	  from  = knowledge.k
	  top_k = 2
	  whole = "%s"
	  fallback "other" { when = "failed" }
	}
	sample "knn" { use = "neighbours" }
	sample "prototype" { use = "prototype" }
	elect "e" { use = "soft" }`
	for rule, want := range map[string]int{"knowledge.tokens < 10": 2, "knowledge.entries < 10": 6} {
		got := runtest.Found(t, runtest.Pipeline(t, runtest.Stages(), fmt.Sprintf(body, rule)), "fast car")
		if got.Failure != nil || len(got.Candidates) != want || (got.Answer == "vehicle") != (want == 2) {
			t.Errorf("%s: got %+v", rule, got)
		}
		if want == 6 && (got.Answer != "" || len(got.Votes) > 0) {
			t.Errorf("%s: voters on candidates that nothing has scored say %+v", rule, got.Votes)
		}
	}
}
