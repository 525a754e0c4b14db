package tokenizer

import (
	"encoding/json"
	"fmt"
)

// piece is a part of a template in tokenizer.json: one of its fields is set.
type piece struct {
	Sequence *struct {
		ID   string `json:"id"`
		Kind int    `json:"type_id"`
	}
	SpecialToken *struct {
		ID   string `json:"id"`
		Kind int    `json:"type_id"`
	}
}

func newTemplateProcessing(raw json.RawMessage) (t template, err error) {
	var f struct {
		Single, Pair []piece
		Specials     map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return t, err
	}
	parts := func(name string, pieces []piece, texts int) (all []part, err error) {
		if len(pieces) > maxTemplate {
			return nil, fmt.Errorf("%s has %d parts: %d are possible", name, len(pieces), maxTemplate)
		}
		count := [2]int{}
		last := 0
		for _, p := range pieces {
			var next part
			switch {
			case p.Sequence != nil && p.Sequence.ID == "A":
				next = part{kind: p.Sequence.Kind}
				count[0]++
			case p.Sequence != nil && p.Sequence.ID == "B":
				next = part{text: 1, kind: p.Sequence.Kind}
				count[1]++
			case p.SpecialToken != nil:
				s, ok := f.Specials[p.SpecialToken.ID]
				if !ok || len(s.IDs) == 0 || len(s.IDs) > maxSpecials {
					return nil, fmt.Errorf("%s uses the token %.40q, which special_tokens lacks", name, p.SpecialToken.ID)
				}
				next = part{ids: s.IDs, kind: p.SpecialToken.Kind}
			default:
				return nil, fmt.Errorf("%s has a part that is neither a sequence nor a special token", name)
			}
			if next.kind < last || next.kind > 1 {
				return nil, fmt.Errorf("%s has the type id %d after %d, which is not supported", name, next.kind, last)
			}
			last = next.kind
			all = append(all, next)
		}
		if count[0] != 1 || count[1] != texts-1 {
			return nil, fmt.Errorf("%s does not have each of its sequences once", name)
		}
		return all, nil
	}
	if t.single, err = parts("single", f.Single, 1); err != nil {
		return t, err
	}
	t.pair, err = parts("pair", f.Pair, 2)
	return t, err
}
