package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// Seen is what the stages saw of an item and made of it, without texts: enough to find these
// again.
type Seen struct {
	Lists Lists `json:"lists,omitempty"` // of the retrieve and rerank stages in file order, but for the one that is the result
	// Prompts are hashes (Hash) of the prompts of each prompt stage, as "prompt.classify".
	Prompts map[string][]string `json:"prompts,omitempty"`
	// Requests are the keys of voters' replies in the response cache, as sdk.Sample has them,
	// in hexadecimal, by voter, in the order of their samples.
	Requests map[string][]string `json:"requests,omitempty"`
	Rules    []outcome.Rule      `json:"rules,omitempty"`
	Retries  []outcome.Retry     `json:"retries,omitempty"`

	// Candidates are those of the last list alone, as an older racflow kept them.
	Candidates []Scored `json:"candidates,omitempty"`
}

// Notable reports whether a person may want to know what led to a result: KeepNotable keeps what was
// seen of it.
func Notable(r *outcome.Result) bool {
	switch {
	case r.Failure != nil || r.Flagged:
		return true
	case r.RetrievalOnly:
		return false
	}
	return r.Answer == "" || r.Expected != "" && !r.FreeText && r.Answer != r.Expected
}

// seen is what was seen of an item; nil: nothing.
func seen(r *outcome.Result) *Seen {
	var s Seen
	lists := r.Lists
	if r.RetrievalOnly && r.Failure == nil && len(lists) > 0 { // the last one is the result
		lists = lists[:len(lists)-1]
	}
	s.Lists = listsOf(lists)
	s.Rules, s.Retries = r.Rules, r.Retries
	for _, p := range r.Prompts {
		if s.Prompts == nil {
			s.Prompts = map[string][]string{}
		}
		s.Prompts[p.Stage] = append(s.Prompts[p.Stage], Hashes(p)...)
	}
	for _, q := range r.Requests {
		if s.Requests == nil {
			s.Requests = map[string][]string{}
		}
		s.Requests[q.Voter] = append(s.Requests[q.Voter], hex.EncodeToString(q.Key[:]))
	}
	if s.Lists == nil && s.Prompts == nil && s.Requests == nil && len(s.Rules) == 0 && len(s.Retries) == 0 {
		return nil
	}
	return &s
}

// Hashes are those of the prompts of a stage.
func Hashes(p outcome.Prompted) []string {
	all := p.Hashes
	for _, prompt := range p.Prompts {
		all = append(all[:len(all):len(all)], Hash(prompt))
	}
	return all
}

// Hash tells prompts apart: the first half of the SHA-256 of the prompt's JSON, in
// hexadecimal.
func Hash(p sdk.Prompt) string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
