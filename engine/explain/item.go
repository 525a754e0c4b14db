package explain

import (
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

// Brief is what the journal and the input say of an item. Its text is empty where the input
// is not there any more.
type Brief struct {
	result.Result
	Line   int            `json:"line"` // in the input
	Status journal.Status `json:"status"`
	// Usages are the tokens that the samples of each voter took, and Cost the money, by the
	// prices that the run began with. nil: none took any, or the journal does not say whose they were.
	Usages map[string]Usage   `json:"usages,omitempty"`
	Cost   map[string]float64 `json:"cost,omitempty"`
	Seen   bool               `json:"seen"` // the journal has what was seen of the item
}

// Usage is sdk.Usage for pages.
type Usage struct {
	Input  uint64 `json:"input"` // with those that the service had cached
	Cached uint64 `json:"cached,omitempty"`
	Output uint64 `json:"output"`
}

// Item is all that is known of an item.
type Item struct {
	Brief
	// Weights are those of the voters in the election, where it has some.
	Weights map[string]float64 `json:"weights,omitempty"`
	Lists   []List             `json:"lists,omitempty"`   // of the retrieve and rerank stages, in file order
	Prompts []Prompted         `json:"prompts,omitempty"` // by stage
	Replies []Reply            `json:"replies,omitempty"` // by voter, in the order of their samples
	Rules   []Rule             `json:"rules,omitempty"`   // that decided something, in file order
	Retries []Retry            `json:"retries,omitempty"`
	Gone    []string           `json:"gone,omitempty"` // what is not there any more, and why: sentences
}

// Counts reports whether a vote counts in the election, or why not.
func (i *Item) Counts(v result.Vote) (counts bool, why string) {
	if weight, known := i.Weights[v.Voter]; known && weight == 0 && v.Accepted {
		return false, "the election has the weight 0 for " + v.Voter
	}
	return v.Accepted, v.Reason
}

// List are the candidates that a stage left for those below it, best first. One whose text
// is gone has an empty text and no label.
type List struct {
	Stage      string             `json:"stage"`           // as "rerank.best"
	Whole      bool               `json:"whole,omitempty"` // they are all of the knowledge, in its order, which nothing has scored
	Candidates []result.Candidate `json:"candidates"`

	found []sdk.Candidate // the same, as stages see them
}

// Prompted are prompts that a prompt stage wrote, letter by letter.
type Prompted struct {
	Stage   string   `json:"stage"` // as "prompt.classify"
	Prompts []Prompt `json:"prompts"`
}

// Prompt is what a model was asked: a text to complete, or a chat.
type Prompt struct {
	Text     string    `json:"text,omitempty"`
	Messages []Message `json:"messages,omitempty"` // of a chat; Text is empty then
}

// Message is a turn of a chat.
type Message struct {
	Role string `json:"role"` // as sdk.Message has it
	Text string `json:"text"`
}

// Reply is what a service replied to a voter, as the response cache has it.
type Reply struct {
	Voter string `json:"voter"`
	Text  string `json:"text"`
}

// Rule is a rule of the file that decided something about an item.
type Rule struct {
	Stage string `json:"stage"` // as "sample.llm"
	Rule  string `json:"rule"`  // "when", "keep", "accept", "flag", "fallback", "on_error" or RuleSpend
	Text  string `json:"text,omitempty"`
	What  string `json:"what"` // it did: a sentence without its full stop
}

// RuleSpend says that the item's turn did not come, where a run may spend only so much. It is
// of no stage.
const RuleSpend = "spend"

// Retry is a stage that was called again about an item.
type Retry struct {
	Stage string `json:"stage"`
	Why   string `json:"why"`
	Times int    `json:"times"`
}
