package sample

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Bounds of the rejected answers that a model is shown: the last different ones, and the bytes of an answer and of
// its reason.
const (
	maxRejections = 2
	openAIMaxLine = 200 // of an answer that should be a single line
	maxRejected   = 2000
	maxReason     = 200
	maxListed     = 1000 // number of labels that are listed again
)

// again returns the messages that extend a chat after rejected answers: each answer, what was wrong with it and, at
// the end, what is allowed. (The library instructor asks again in the same way.)
func again(q *question, rejected []sdk.Rejection) []sdk.Message {
	p := q.prompt
	var last []sdk.Rejection
	most := maxRejected
	if p.Fields == nil && p.Passages == nil {
		most = openAIMaxLine
	}
	for _, r := range slices.Backward(rejected) {
		r.Text, r.Reason = clip(strings.TrimSpace(r.Text), most), clip(r.Reason, maxReason)
		if r.Text == "" || slices.ContainsFunc(last, func(other sdk.Rejection) bool { return other.Text == r.Text }) {
			continue
		}
		if last = append(last, r); len(last) == maxRejections {
			break
		}
	}
	slices.Reverse(last)
	var turns []sdk.Message
	for i, r := range last {
		if r.Reason == support.CutOff {
			r.Reason = "it was too long and was cut off"
		}
		note := fmt.Sprintf("This answer cannot be used: %s.", r.Reason)
		if i == len(last)-1 {
			note += "\n" + q.allowed()
		}
		turns = append(turns, sdk.Message{Role: sdk.MessageAssistant, Text: r.Text}, sdk.Message{Role: sdk.MessageUser, Text: note})
	}
	return turns
}

// clip returns the beginning of a text, at most the given number of bytes.
func clip(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}

// allowed describes valid answers to a prompt.
func (q *question) allowed() string {
	p := q.prompt
	if p.Passages != nil {
		if len(p.Passages) == 0 {
			return "Answer again."
		}
		return "Answer again from the passages, and cite them by their numbers." + unless(p)
	}
	labels := "one of the allowed labels, written exactly as it was given"
	if list := fewshot.JSON(p.Labels); len(p.Labels) > 0 && len(list) <= maxListed {
		labels = "one of these, written exactly so: " + list[1:len(list)-1]
	} else if len(p.Labels) == 0 {
		labels = "a label"
	}
	switch {
	case slices.Contains(p.Fields, sdk.LabelsProperty):
		return fmt.Sprintf("Answer again with one JSON object and nothing else. Each element of its list %q is %s.", sdk.LabelsProperty, labels)
	case q.many:
		return fmt.Sprintf("Answer again with labels and nothing else, %q between them. Each is %s.%s", sdk.LabelSeparator, labels, unless(p))
	case p.Fields != nil:
		return fmt.Sprintf("Answer again with one JSON object and nothing else. Its property %q is %s.%s", sdk.LabelProperty, labels, unless(p))
	}
	return fmt.Sprintf("Answer again with a label and nothing else: %s.%s", labels, unless(p))
}

// unless describes the answer that says that no label fits.
func unless(p sdk.Prompt) string {
	if p.None == "" {
		return ""
	}
	return fmt.Sprintf(" If there is none that fits, it is %s.", fewshot.JSON(p.None))
}

// longest returns the longest possible rejections, for the forecast of another try.
func longest() []sdk.Rejection {
	all := make([]sdk.Rejection, maxRejections)
	for i := range all {
		all[i] = sdk.Rejection{Text: string(rune('a'+i)) + strings.Repeat("x", maxRejected), Reason: strings.Repeat("x", maxReason)}
	}
	return all
}

// ask fills the slots of one question and one backend. If the backend does not answer, the others fill them.
func (v *openAIVoter) ask(ctx context.Context, slots []*slot) error {
	return v.set.Do(ctx, slots[0].backend, func(ctx context.Context, b *Backend) error {
		left := slices.DeleteFunc(slices.Clone(slots), func(s *slot) bool { return s.given })
		return v.askAll(ctx, b, left)
	})
}

// askAll fills slots. The first request is sent alone, so that the server has the prompt in its cache for the others.
// In batches, all requests are sent at once.
func (v *openAIVoter) askAll(ctx context.Context, b *Backend, slots []*slot) error {
	if len(slots) == 0 {
		return nil
	}
	sent, err := b.Applied(ctx, v.numbered(b, slots[0].question, 0, min(len(slots), v.config.MaxN)))
	if err != nil {
		return err
	}
	size := max(1, sent.N)
	if len(slots) <= size {
		return v.askUntil(ctx, b, slots)
	}
	if !api.Later(ctx) {
		if err := v.askUntil(ctx, b, slots[:size]); err != nil {
			return err
		}
		slots = slots[size:]
	}
	return v.askInParts(ctx, b, slots, size)
}

// askInParts fills slots with requests for size answers each.
func (v *openAIVoter) askInParts(ctx context.Context, b *Backend, slots []*slot, size int) error {
	var calls errgroup.Group
	for part := range slices.Chunk(slots, size) {
		calls.Go(func() error { return v.askUntil(ctx, b, part) })
	}
	return calls.Wait()
}

// askUntil requests choices until every slot has one. Each choice is cached as soon as it arrives.
func (v *openAIVoter) askUntil(ctx context.Context, b *Backend, slots []*slot) error {
	for len(slots) > 0 {
		want := min(len(slots), v.config.MaxN)
		given, asked, err := v.request(ctx, b, slots, want)
		if want > 1 && api.BadRequest(err) && sdk.CodeOf(err) != sdk.CodeRefused { // n may be too large
			for want > 1 && api.BadRequest(err) {
				want /= 2
				given, asked, err = v.request(ctx, b, slots, want)
			}
			if err == nil {
				b.Gives(ctx, want)
			}
		}
		if api.TooLong(err) {
			err = fmt.Errorf("%w; max_tokens in the config of the prompt makes it shorter", err)
		}
		if err != nil {
			return err
		}
		if given < min(want, asked) {
			b.WarnOnce("fewer", "the server gives fewer choices than it is asked for: it is asked again", "asked", asked, "given", given)
		}
		if slots = slots[given:]; api.Later(ctx) { // send the rest at once
			return v.askInParts(ctx, b, slots, given)
		}
	}
	return nil
}

// request sends one request for n answers, fills slots with the server's choices and caches them. given is the number
// of filled slots, at least one unless there is an error. asked is how many choices the model was asked for, which
// may be fewer than n.
func (v *openAIVoter) request(ctx context.Context, b *Backend, slots []*slot, n int) (given, asked int, err error) {
	q := slots[0].question
	err = b.Send(api.For(ctx, slots[0].key), v.numbered(b, q, slots[0].number, n), func(got dialect.Reply, sent dialect.Request) error {
		given, asked = min(len(got.Choices), len(slots)), max(1, sent.N)
		var keys []sdk.Key
		var values [][]byte
		keep := func(key sdk.Key, r reply) { keys, values = append(keys, key), append(values, api.Value(r)) }
		for i, s := range slots[:given] {
			r := reply{Choice: got.Choices[i]}
			v.weigh(q, &r, sent)
			if i == 0 {
				r.Input, r.Cached, r.Output = got.Usage.InputTokens, got.Usage.CachedTokens, got.Usage.OutputTokens
			}
			if s.backend.Same != b.Same { // the answer replaces the other model's answer, and is also cached as this model's own
				keep(q.key(b, s.number), r)
				r.Model = b.Name()
			}
			keep(s.key, r)
			s.reply, s.given = r, true
		}
		v.CachePut(ctx, keys, values)
		return nil
	})
	return given, asked, err
}

// weigh adds probabilities to a reply if they were requested and the server gave them.
func (v *openAIVoter) weigh(q *question, r *reply, sent dialect.Request) {
	if !sent.Logprobs {
		return
	}
	if len(r.Tokens) == 0 {
		v.WarnOnce("logprobs", "the server gives no logprobs: its answers weigh 1")
		return
	}
	if own, others := likely(r.Tokens, q.prompt, v.reading); !math.IsNaN(own) {
		if r.Probability = own; q.tree == nil { // with levels, further questions follow only the given answer
			r.Others = others
		}
	}
}

// reply is one choice in its cached form.
type reply struct {
	dialect.Choice
	Probability float64            `json:"probability,omitempty"` // of the label; 0: not given
	Others      map[string]float64 `json:"others,omitempty"`      // of other labels, as far as given
	// Usage of the whole request, on its first choice only.
	Input  uint64 `json:"input,omitempty"`
	Cached uint64 `json:"cached,omitempty"`
	Output uint64 `json:"output,omitempty"`
	// Model is the model that answered, if another one should have answered.
	Model string `json:"model,omitempty"`
}

// take fills a slot with a cached value, and reports whether the value is a usable reply.
func (v *openAIVoter) take(s *slot, value []byte) bool {
	var r reply
	if value == nil || json.Unmarshal(value, &r) != nil || r.Model != "" && !v.set.Has(r.Model) {
		return false
	}
	s.reply, s.given = r, true
	return true
}

// read converts a slot's reply into a sample.
func (v *openAIVoter) read(s *slot) sdk.Sample {
	r := s.reply
	all := support.ReadAnswers(r.Text, s.question.prompt, v.reading)
	if r.Probability > 0 {
		all[0].Weight = r.Probability
	}
	if len(all) == 1 && all[0].Label != "" {
		all = r.spread(all[0])
	}
	if reason := r.unusable(all[0], s.question); reason != all[0].Reason {
		all = []sdk.Answer{{Weight: all[0].Weight, Reason: reason}}
	}
	sample := sdk.Sample{
		Answers: all,
		Usage:   sdk.Usage{InputTokens: r.Input, CachedTokens: r.Cached, OutputTokens: r.Output},
		Text:    clip(r.Visible(), maxRejected),
		Key:     s.key,
	}
	if len(v.set.All) > 1 {
		sample.Model = cmp.Or(r.Model, s.backend.Name())
	}
	return sample
}

// spread returns the answer, and the other labels with their probabilities, the likeliest first.
func (r reply) spread(own sdk.Answer) []sdk.Answer {
	all := []sdk.Answer{own}
	for label, share := range r.Others {
		if label != own.Label {
			all = append(all, sdk.Answer{Label: label, Weight: share})
		}
	}
	slices.SortFunc(all, func(a, b sdk.Answer) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Label, b.Label))
	})
	return all
}

// unusable returns why a reply is no answer; empty: it is one.
func (r reply) unusable(a sdk.Answer, q *question) string {
	if reason := r.Unusable(); reason != "" {
		return reason
	}
	if r.Cut() && (a.Reason != "" || q.prompt.Passages != nil || r.cutLabel(a, q)) {
		return dialect.TooLong
	}
	return a.Reason
}

// cutLabel reports whether the label itself may be truncated: if an unfinished line is no known label, or if the
// label ends where the text ends.
func (r reply) cutLabel(a sdk.Answer, q *question) bool {
	p := q.prompt
	if q.many {
		return p.Fields == nil && !strings.Contains(strings.TrimSpace(r.Text), "\n")
	}
	if a.Reading != "" {
		_, to := support.AnswerSpan(r.Text, p, support.AnswerOptions{})
		rest := r.Text[to:]
		return !strings.Contains(rest, "\n") && strings.TrimSpace(rest) == ""
	}
	if p.Fields != nil || len(p.Labels) == 0 || a.Label == "" || strings.Contains(strings.TrimSpace(r.Text), "\n") {
		return false
	}
	return !slices.Contains(p.Labels, a.Label)
}

// Limits of OpenAI's strict schemas: the number of values in an enum, and their characters in all if there are many
// values.
const (
	maxValues     = 1000
	manyValues    = 250
	maxCharacters = 15000
)

// structure restricts the answer to the question's labels, by a schema or a grammar.
func (v *openAIVoter) structure(q *question) error {
	if q.prompt.Passages != nil { // the model writes a free text
		return nil
	}
	allowed := q.prompt.Labels
	if q.prompt.None != "" && len(allowed) > 0 {
		allowed = append(allowed[:len(allowed):len(allowed)], q.prompt.None)
	}
	switch mode := v.config.Structured; {
	case mode == "choice" && q.prompt.Fields != nil:
		return sdk.Invalid(errors.New(`the prompt wants JSON, which structured = "choice" rules out; write "auto"`))
	case mode == "choice" && q.many:
		return sdk.Invalid(errors.New(`labels are sets, of which structured = "choice" allows no more than one label; write "auto"`))
	case mode == "choice":
		q.request.Choice = allowed
	case mode == "json_schema", mode == "auto" && q.prompt.Fields != nil:
		if q.prompt.Fields == nil {
			q.prompt.Fields = []string{sdk.LabelProperty}
			if q.many {
				q.prompt.Fields = []string{sdk.LabelsProperty}
			}
		}
		if !listable(allowed) {
			v.WarnOnce("schema", "the labels are too many for a JSON schema: the model may answer others, which accept rules have to refuse", "labels", len(allowed))
			allowed = nil
		}
		q.request.Schema, q.request.Grammar = schema(q.prompt.Fields, allowed), grammar(q.prompt.Fields, allowed)
	}
	return nil
}

func listable(values []string) bool {
	characters := 0
	for _, value := range values {
		characters += utf8.RuneCountInString(value)
	}
	return len(values) <= maxValues && (len(values) <= manyValues || characters <= maxCharacters)
}

// schema returns a strict schema of an object of strings, whose label is one of the allowed labels, or whose labels
// are a list of them; nil allows any label. Servers write the properties in this order, so a reasoning precedes its
// label.
func schema(fields, allowed []string) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	for i, field := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		value := `{"type":"string"}`
		if (field == sdk.LabelProperty || field == sdk.LabelsProperty) && len(allowed) > 0 {
			value = `{"type":"string","enum":` + fewshot.JSON(allowed) + `}`
		}
		if field == sdk.LabelsProperty {
			value = `{"type":"array","items":` + value + `}`
		}
		b.WriteString(fewshot.JSON(field) + ":" + value)
	}
	b.WriteString(`},"required":` + fewshot.JSON(fields) + `,"additionalProperties":false}`)
	return b.Bytes()
}

// grammar returns the schema as GBNF. llama.cpp obeys it on its completions endpoint, where it ignores schemas.
func grammar(fields, allowed []string) string {
	var b strings.Builder
	b.WriteString("root ::= ")
	for i, field := range fields {
		before := ", "
		if i == 0 {
			before = "{"
		}
		b.WriteString(literal(before+fewshot.JSON(field)+": ") + " ")
		value := "string"
		if (field == sdk.LabelProperty || field == sdk.LabelsProperty) && len(allowed) > 0 {
			value = "label"
		}
		if field == sdk.LabelsProperty {
			value = fmt.Sprintf(`"[" (%s (", " %s)*)? "]"`, value, value)
		}
		b.WriteString(value + " ")
	}
	b.WriteString(literal("}") + "\n")
	if len(allowed) > 0 {
		var labels []string
		for _, label := range allowed {
			labels = append(labels, literal(fewshot.JSON(label)))
		}
		b.WriteString("label ::= " + strings.Join(labels, " | ") + "\n")
	}
	b.WriteString(`string ::= "\"" ([^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt])* "\""` + "\n")
	return b.String()
}

// literal quotes a text for GBNF. JSON contains no line breaks.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
