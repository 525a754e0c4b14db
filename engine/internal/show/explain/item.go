package explain

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Item has all details of an item.
type Item struct {
	Brief
	// Weights holds the voters' weights in the election, if it has weights.
	Weights map[string]float64 `json:"weights,omitempty"`
	Lists   []List             `json:"lists,omitempty"`   // from the retrieve and rerank stages, in file order
	Prompts []Prompted         `json:"prompts,omitempty"` // by stage
	Replies []Reply            `json:"replies,omitempty"` // by voter, in the order of the voter's samples
	Rules   []Rule             `json:"rules,omitempty"`   // rules that decided something, in file order
	Retries []outcome.Retry    `json:"retries,omitempty"`
	Gone    []string           `json:"gone,omitempty"` // sentences: what is missing, and why
}

// kept is an item while its details are looked up.
type kept struct {
	Item
	row     source.Row
	seen    *journal.Seen
	unasked *outcome.Bill
	found   []sdk.Candidate // the candidates that are the result
	passed  bool            // the run keeps what was seen of such an item only with keep = "all"
}

func keptOf(item *journal.Item, b *Brief) *kept {
	passed := item.Seen == nil && item.Status != journal.Unreached && item.Result.Decided == nil && !journal.Notable(&item.Result)
	return &kept{Item: Item{Brief: *b}, row: item.Row, seen: item.Seen, unasked: item.Result.Unasked, found: item.Result.Candidates, passed: passed}
}

func (k *kept) lose(format string, args ...any) {
	k.Gone = append(k.Gone, fmt.Sprintf(format, args...))
}

// complete adds the details to each item, and notes which details no longer exist. It completes one
// batch at a time.
func (r *Run) complete(ctx context.Context, items []*kept) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	weights := r.Weights().Weights
	for _, k := range items {
		r.list(k)
		r.decide(k)
		k.Weights = weights
		if k.passed && r.journal.Manifest.Answers != journal.PassageAnswers {
			k.lose("what was seen: the run keeps that of items that are flagged, failed, wrong or without an answer; racflow run --keep all keeps it of every item, as does keep = \"all\" in the pipeline's journal block")
		}
	}
	if err := r.addTexts(ctx, items); err != nil {
		return err
	}
	r.prompt(ctx, items)
	for _, k := range items {
		r.reply(k)
		for i := range k.Lists {
			if l := &k.Lists[i]; l.found != nil {
				l.Candidates = output.Candidates(l.found)
			}
		}
		slices.Sort(k.Gone)
	}
	return ctx.Err()
}

// retrievalOnly reports whether the item's candidates are its result.
func (k *kept) retrievalOnly() bool { return len(k.Candidates) > 0 }

// list makes the lists of an item, without texts. If a list is the item's result, its candidates
// have texts.
func (r *Run) list(k *kept) {
	if k.seen != nil {
		for _, l := range k.seen.Lists {
			k.Lists = append(k.Lists, List{Stage: l.Stage, Whole: l.Whole, found: bare(l.Found)})
		}
	}
	if k.retrievalOnly() {
		k.Lists = append(k.Lists, List{Stage: r.lastList(), Candidates: k.Candidates, found: k.found})
	}
}

func bare(all []journal.Scored) []sdk.Candidate {
	found := make([]sdk.Candidate, len(all))
	for i, c := range all {
		found[i] = sdk.Candidate{ID: c.ID, Score: c.Score, Dense: c.Dense, Lexical: c.Lexical}
	}
	return found
}

// lastList returns the name of the last stage that leaves candidates, for lists that the journal keeps
// without a stage.
func (r *Run) lastList() string {
	if r.pipeline == nil {
		return ""
	}
	for _, s := range slices.Backward(r.pipeline.Definition().Stages) {
		if s.Enabled && (s.Block == "retrieve" || s.Block == "rerank") {
			return s.Block + "." + s.Name
		}
	}
	return ""
}

// Brief is an item with the data of the journal and the input. Its text is empty if the input is
// missing.
type Brief struct {
	result.Result
	Line   int            `json:"line"` // in the input
	Status journal.Status `json:"status"`
	// Usages holds the tokens of each voter's samples, and Cost their cost, by the prices when the run
	// began. nil: no tokens were used, or the journal does not have them by voter.
	Usages map[string]Usage   `json:"usages,omitempty"`
	Cost   map[string]float64 `json:"cost,omitempty"`
	Seen   bool               `json:"seen"` // the journal has the details of the item
}

// Usage is the JSON form of sdk.Usage for pages.
type Usage struct {
	Input  uint64 `json:"input"` // including tokens that the service had cached
	Cached uint64 `json:"cached,omitempty"`
	Output uint64 `json:"output"`
}

// Counts reports whether a vote counts in the election, and if not, why.
func (i *Item) Counts(v result.Vote) (counts bool, why string) {
	if weight, known := i.Weights[v.Voter]; known && weight == 0 && v.Accepted {
		return false, "the election has the weight 0 for " + v.Voter
	}
	return v.Accepted, v.Reason
}

// List holds the candidates that a stage left, best first. If a candidate's text is missing, it has
// an empty text and no label.
type List struct {
	Stage      string             `json:"stage"`           // such as "rerank.best"
	Whole      bool               `json:"whole,omitempty"` // all of the knowledge, in its own order, without scores
	Candidates []result.Candidate `json:"candidates"`

	found []sdk.Candidate // the candidates in the form that stages use
}

// Prompted holds the prompts that a prompt stage wrote, unchanged.
type Prompted struct {
	Stage   string   `json:"stage"` // such as "prompt.classify"
	Prompts []Prompt `json:"prompts"`
}

// Prompt is a prompt to a model: a text to complete, or a chat.
type Prompt struct {
	Text     string    `json:"text,omitempty"`
	Messages []Message `json:"messages,omitempty"` // the chat; Text is then empty
}

// Message is a turn of a chat.
type Message struct {
	Role string `json:"role"` // as in sdk.Message
	Text string `json:"text"`
}

// Reply is a service's reply to a voter, from the response cache.
type Reply struct {
	Voter string `json:"voter"`
	Text  string `json:"text"`
}

// Rule is a rule of the file that decided something about an item.
type Rule struct {
	Stage string `json:"stage"` // such as "sample.llm"
	Rule  string `json:"rule"`  // "when", "keep", "accept", "flag", "fallback", "on_error" or RuleSpend
	Text  string `json:"text,omitempty"`
	What  string `json:"what"` // what the rule did: a sentence without its full stop
}

// RuleSpend means that the run's spending limit went to other items. It belongs to no stage.
const RuleSpend = "spend"

// reply adds the services' replies about an item.
func (r *Run) reply(k *kept) {
	if k.seen == nil {
		return
	}
	for _, voter := range slices.Sorted(maps.Keys(k.seen.Requests)) {
		keys, missing := k.seen.Requests[voter], 0
		for _, key := range keys {
			text, ok := r.replyTo(voter, key)
			if !ok {
				missing++
				continue
			}
			k.Replies = append(k.Replies, Reply{voter, text})
		}
		if missing > 0 {
			k.lose("%d of %d replies to sample.%s: the response cache does not have them any more", missing, len(keys), voter)
		}
	}
}

// replyTo looks up a reply to the voter or to one of its fallbacks.
func (r *Run) replyTo(voter, key string) (string, bool) {
	var k sdk.Key
	if n, err := hex.Decode(k[:], []byte(key)); err != nil || n != len(k) || r.replies == nil {
		return "", false
	}
	for _, s := range r.journal.Manifest.Stages {
		if name, _, _ := strings.Cut(s.Stage, ", "); name != "sample."+voter {
			continue
		}
		if value, ok := r.replies.Get(governor.KeyOf(sdk.KindSample, s.Use, k)); ok {
			return replyText(value), true
		}
	}
	return "", false
}

// replyText returns the text field of a cached reply or, without such a field, the whole reply.
func replyText(reply []byte) string {
	var known struct{ Text *string }
	if json.Unmarshal(reply, &known) == nil && known.Text != nil {
		return *known.Text
	}
	return string(reply)
}

// decide adds the rules that decided something about an item, and the stages that were called
// again.
func (r *Run) decide(k *kept) {
	if bill := k.unasked; bill != nil {
		k.Rules = append(k.Rules, Rule{Rule: RuleSpend, What: fmt.Sprintf("no voter that calls a service was asked, which would take %d calls: what the run may spend goes to other items", bill.Calls)})
	}
	if k.seen == nil {
		return
	}
	for _, one := range k.seen.Rules {
		k.Rules = append(k.Rules, Rule{Stage: one.Stage, Rule: one.Rule, Text: r.textOf(one), What: whatOf(one)})
	}
	k.Retries = k.seen.Retries
}

// textOf returns a rule as it was written; empty: on_error, which is no rule of the file.
func (r *Run) textOf(one outcome.Rule) string {
	all := r.journal.Manifest.Rules
	at := slices.IndexFunc(all, func(m journal.ManifestRule) bool {
		return m.Stage == one.Stage && m.Rule == one.Rule && m.Name == one.Name
	})
	if at < 0 {
		return ""
	}
	return all[at].Text
}

// whatOf describes what a rule did.
func whatOf(one outcome.Rule) string {
	switch one.Rule {
	case outcome.RuleWhen:
		return "it does not hold, so the stage did nothing for the item"
	case outcome.RuleKeep:
		return fmt.Sprintf("it dropped %d of %d candidates", one.N, one.Of)
	case outcome.RuleAccept:
		return fmt.Sprintf("it refused %d of %d answers", one.N, one.Of)
	case outcome.RuleFlag:
		return "it holds, so a person should look at the item"
	case outcome.RuleFallback:
		if one.Why == "" {
			return fmt.Sprintf("it holds, so the fallback %q took over", one.Name)
		}
		return fmt.Sprintf("it holds, so the fallback %q took over after: %s", one.Name, one.Why)
	case outcome.RuleOnError:
		return "the stage failed and was skipped: " + one.Why
	}
	return one.Why
}
