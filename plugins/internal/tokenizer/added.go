package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/tokenizer/jsonlist"
	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

const (
	maxAdded    = 1 << 20 // tokens
	maxAddedLen = 512     // bytes of one
)

// addedToken is a token that stands for itself wherever it occurs in a text.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Left       bool   `json:"lstrip"` // takes the white space before it
	Right      bool   `json:"rstrip"` // takes that behind it
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// readAddedList reads the "added_tokens" of a tokenizer.json, up to their greatest number.
func readAddedList(raw json.RawMessage) (tokens []addedToken, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '[' {
		return nil, json.Unmarshal(raw, &tokens)
	}
	tokens = []addedToken{}
	err = jsonlist.Each(raw, func(element []byte) error {
		if len(tokens) == maxAdded {
			return fmt.Errorf("more than %d tokens", maxAdded)
		}
		var a addedToken
		if err := json.Unmarshal(element, &a); err != nil {
			return err
		}
		tokens = append(tokens, a)
		return nil
	})
	return tokens, err
}

// readAdded sets the added tokens. The library gives them the ids of the model, or the
// next free ones, whatever the file says: a file that says otherwise is refused.
func (t *Tokenizer) readAdded(tokens []addedToken) error {
	ids := make(map[string]int32, len(tokens))
	var plain, normalized []addedToken
	next := int32(t.model.Size())
	for _, a := range tokens {
		id, known := t.model.ID(a.Content)
		_, twice := ids[a.Content]
		switch {
		case a.Content == "":
			return fmt.Errorf("the token with id %d is empty", a.ID)
		case len(a.Content) > maxAddedLen:
			return fmt.Errorf("token %.40q... has %d bytes: %d are possible", a.Content, len(a.Content), maxAddedLen)
		case twice:
			return fmt.Errorf("token %.40q occurs twice", a.Content)
		case known && id != a.ID:
			return fmt.Errorf("token %.40q has id %d, in the model it has %d", a.Content, a.ID, id)
		case !known && a.ID != next:
			return fmt.Errorf("token %.40q has id %d: the next free one is %d", a.Content, a.ID, next)
		case !known:
			next++
		}
		ids[a.Content] = a.ID
		if !a.Normalized {
			plain = append(plain, a)
			continue
		}
		a.Content, _ = t.normalizer.String(a.Content, normalizer.Edges{})
		if a.Content != "" {
			normalized = append(normalized, a)
		}
	}
	t.added, t.normalized = newAddedTokens(plain), newAddedTokens(normalized)
	for i := 1; i < len(normalized); i++ {
		if a, b := normalized[i-1], normalized[i]; a.Content == b.Content {
			return fmt.Errorf("the tokens with ids %d and %d are both %.40q once they are normalised", a.ID, b.ID, a.Content)
		}
	}
	return nil
}
