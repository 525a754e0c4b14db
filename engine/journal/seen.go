package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// Seen is what the stages saw of an item, without texts: enough to find them again.
type Seen struct {
	Candidates []Scored `json:"candidates,omitempty"` // of the last retrieve or rerank stage, best first
	// Prompts are hashes (Hash) of the prompts of each prompt stage, as "prompt.classify".
	Prompts map[string][]string `json:"prompts,omitempty"`
	// Requests are the keys of voters' replies in the response cache, as sdk.Sample has them,
	// in hexadecimal, by voter, in the order of their samples.
	Requests map[string][]string `json:"requests,omitempty"`
}

// Scored is a candidate with its score after fusion, or the reranker's. There are many: in JSON
// it is ["id", score].
type Scored struct {
	ID    string
	Score float32
}

// MarshalJSON implements json.Marshaler.
func (s Scored) MarshalJSON() ([]byte, error) { return json.Marshal([]any{s.ID, s.Score}) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scored) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&s.ID, &s.Score})
}

// notable reports whether a person may want to know what led to a result.
func notable(r *outcome.Result) bool {
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
	if !r.RetrievalOnly { // else the candidates are the result
		for _, c := range r.Candidates {
			s.Candidates = append(s.Candidates, Scored{c.ID, c.Score})
		}
	}
	for _, p := range r.Prompts {
		if s.Prompts == nil {
			s.Prompts = map[string][]string{}
		}
		for _, prompt := range p.Prompts {
			s.Prompts[p.Stage] = append(s.Prompts[p.Stage], Hash(prompt))
		}
	}
	for _, q := range r.Requests {
		if s.Requests == nil {
			s.Requests = map[string][]string{}
		}
		s.Requests[q.Voter] = append(s.Requests[q.Voter], hex.EncodeToString(q.Key[:]))
	}
	if s.Candidates == nil && s.Prompts == nil && s.Requests == nil {
		return nil
	}
	return &s
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
