package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file explains why many answers of a voter were refused, and advises arguments of the voter
// or of its prompt that would make them acceptable. The advice depends on the answers and on the
// file's arguments; whether it helps accuracy, it cannot know.

// advice returns changes that would make answers acceptable.
func advice(d outcome.Dropped, p *pipeline.Pipeline, labels []string) []string {
	var all []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	voter, prompt := stagesOf(p, d.Voter)
	endpoint, _ := argument(voter, "endpoint")
	reads, has := argument(voter, "read")
	plain := 0
	if reads != "plain" {
		plain = readable(d.Texts, labels, support.AnswerOptions{})
	}
	nearest := readable(d.Texts, labels, support.AnswerOptions{Exact: true, Nearest: 1})
	switch _, knows := argument(voter, "nearest"); {
	case plain >= nearest && has:
		say(plain, `read = "plain" would read %d of them as labels`, plain)
	case plain >= nearest:
		say(plain, `a voter with read = "plain" would read %d of them as labels`, plain)
	case knows: // only 1, where nothing but a label's words counts: less may confuse labels
		say(nearest, "nearest = 1 would read %d of them as labels", nearest)
	default:
		say(nearest, "a voter with nearest = 1 would read %d of them as labels", nearest)
	}
	cut := count(d.Texts, func(t outcome.Text) bool { return t.Reason == support.CutOff })
	say(cut, "%d were cut off: a larger max_tokens lets them end", cut)
	empty := count(d.Texts, func(t outcome.Text) bool { return t.Reason == support.NoAnswer })
	switch endpoint {
	case "completions":
		say(empty, `%d are empty: a chat model needs endpoint = "chat"`, empty)
	case "chat":
		say(empty, `%d are empty: a model that is not made for chats needs endpoint = "completions", and one that thinks first more max_tokens`, empty)
	default:
		say(empty, "%d are empty: see whether the voter's service is asked as its model wants it", empty)
	}
	if stop, _ := argument(voter, "stop"); stop != "[]" && (stop != "" || endpoint == "completions") { // by default, completions end at a line break
		first := count(d.Texts, func(t outcome.Text) bool { return begins(t.Answer) })
		say(first, "%d are but the beginning of an answer: stop = [] lets them go on", first)
	}
	if none, ok := argument(prompt, "none"); ok && none == "" && len(d.Texts) > 0 {
		if t := d.Texts[0]; 2*t.Count > d.Dropped && t.Answer != "" && len(strings.Fields(t.Answer)) <= mostWords && !begins(t.Answer) && !slices.Contains(labels, t.Answer) && readable(d.Texts[:1], labels, support.AnswerOptions{Nearest: 1}) == 0 {
			say(t.Count, "if %q says that no label fits, none = %[1]q in the config of prompt.%s makes it an answer", t.Answer, prompt.Name)
		}
	}
	return all
}

// mostWords limits the words of a text that means that no label fits.
const mostWords = 4

// begins reports whether an answer is only the opening of a longer one: a fence, or a tag.
func begins(text string) bool {
	return strings.HasPrefix(text, "```") && !strings.HasSuffix(strings.TrimLeft(text, "`"), "```") || strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && strings.Count(text, "<") == 1
}

func count(texts []outcome.Text, is func(outcome.Text) bool) (n int) {
	for _, t := range texts {
		if is(t) {
			n += t.Count
		}
	}
	return n
}

// readable counts the answers that these options read as a label, and that are no label without
// them.
func readable(texts []outcome.Text, labels []string, o support.AnswerOptions) int {
	known := map[string]bool{}
	for _, l := range labels {
		known[l] = true
	}
	return count(texts, func(t outcome.Text) bool {
		return t.Answer != "" && !known[t.Answer] && known[support.ReadAnswer(t.Answer, sdk.Prompt{Labels: labels}, o).Label]
	})
}

// stagesOf returns a voter and the prompt stage that it reads; nil: there is none.
func stagesOf(p *pipeline.Pipeline, name string) (voter, prompt *pipeline.Stage) {
	for _, s := range p.Stages {
		switch {
		case s.Block == "prompt" && s.Enabled:
			prompt = s
		case s.Block == "sample" && s.Name == name:
			if !s.Info.Reads.Has(sdk.ColumnPrompts) {
				prompt = nil
			}
			return s, prompt
		}
	}
	return nil, nil
}

// argument returns the value of a stage's argument, texts without quotes; ok: the stage has it.
func argument(s *pipeline.Stage, name string) (value string, ok bool) {
	if s == nil {
		return "", false
	}
	at := slices.IndexFunc(s.Info.Arguments, func(a sdk.Argument) bool { return a.Name == name })
	if at < 0 {
		return "", false
	}
	raw := []byte(s.Info.Arguments[at].Default)
	var given map[string]json.RawMessage
	if json.Unmarshal(s.Config.Public, &given) == nil && given[name] != nil {
		raw = given[name]
	}
	if json.Unmarshal(raw, &value) != nil {
		value = string(raw)
	}
	return value, true
}

// DroppedReport describes the refused answers of a voter.
type DroppedReport struct {
	Voter    string          `json:"voter"`
	Answers  int             `json:"answers"` // all its answers
	Dropped  int             `json:"dropped"` // of Answers: refused
	Frequent []DroppedAnswer `json:"frequent"`
	Advice   []string        `json:"advice,omitempty"`
}

// DroppedAnswer is a refused answer, shortened, and without control characters for a terminal.
type DroppedAnswer struct {
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"` // why Answer is empty
	Count  int    `json:"count"`            // a lower bound
}

const (
	shown      = 3
	shownWidth = 60 // runes of an answer
)

// DroppedAnswers reports the voters of a run with more than 5 % of their answers refused. The labels
// are the knowledge's.
func DroppedAnswers(t outcome.Totals, p *pipeline.Pipeline, labels []string) []DroppedReport {
	var all []DroppedReport
	for _, d := range t.Dropped() {
		all = append(all, of(d, p, labels))
	}
	return all
}

func of(d outcome.Dropped, p *pipeline.Pipeline, labels []string) DroppedReport {
	slices.SortStableFunc(d.Texts, func(a, b outcome.Text) int { return cmp.Compare(b.Count, a.Count) })
	r := DroppedReport{Voter: d.Voter, Answers: d.Answers, Dropped: d.Dropped}
	for _, t := range d.Texts[:min(len(d.Texts), shown)] {
		r.Frequent = append(r.Frequent, DroppedAnswer{terminal.Shorten(t.Answer, shownWidth), terminal.Shorten(t.Reason, shownWidth), t.Count})
	}
	r.Advice = advice(d, p, labels)
	return r
}

// String returns the report as a line for a person.
func (r DroppedReport) String() string {
	var frequent []string
	for _, a := range r.Frequent {
		reason := ""
		if a.Reason != "" {
			reason = ": " + a.Reason
		}
		frequent = append(frequent, fmt.Sprintf("%q (%d%s)", a.Answer, a.Count, reason))
	}
	text := fmt.Sprintf("sample.%s: %d of %d answers do not count (%d %%), such as %s", r.Voter, r.Dropped, r.Answers, 100*r.Dropped/max(r.Answers, 1), strings.Join(frequent, ", "))
	return strings.Join(append([]string{text}, r.Advice...), "; ")
}
