package journal

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// List are the candidates that a retrieve or rerank stage left, best first.
type List struct {
	Stage string
	Whole bool // they are all of the knowledge: Found is nil
	Found []Scored
}

// Lists are those of an item. There are many candidates: in JSON one is
//
//	["id", score]                  where one leg of a search found it, or nothing scored it
//	["id", score, dense, lexical]  where both were asked; null: that leg did not score it
//	[3, score]                     where a list above has it, as its fourth one: a reranked one
//
// Scores are as they were, those of legs are rounded to four digits behind the point.
type Lists []List

// Scored is a candidate with its score after fusion, or the reranker's, and those of the legs
// of the search, or sdk.Unscored.
type Scored struct {
	ID                    string
	Score, Dense, Lexical float32
}

// listsOf are the lists of a result; nil: none has candidates.
func listsOf(all []outcome.List) (lists Lists) {
	for _, l := range all {
		if len(l.Candidates) == 0 {
			continue
		}
		list := List{Stage: l.Stage, Whole: l.Whole}
		if !l.Whole {
			list.Found = make([]Scored, len(l.Candidates))
			for i, c := range l.Candidates {
				list.Found[i] = Scored{c.ID, c.Score, c.Dense, c.Lexical}
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// listLine is a list as a line has it.
type listLine struct {
	Stage string              `json:"stage"`
	Whole bool                `json:"whole,omitempty"`
	Found [][]json.RawMessage `json:"found,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (l Lists) MarshalJSON() ([]byte, error) {
	at := map[string]int{}
	lines := make([]struct {
		Stage string  `json:"stage"`
		Whole bool    `json:"whole,omitempty"`
		Found [][]any `json:"found,omitempty"`
	}, len(l))
	for i, list := range l {
		lines[i].Stage, lines[i].Whole = list.Stage, list.Whole
		for _, c := range list.Found {
			if n, above := at[c.ID]; above {
				lines[i].Found = append(lines[i].Found, []any{n, c.Score})
				continue
			}
			at[c.ID] = len(at)
			one := []any{c.ID, c.Score}
			if legs := [2]any{rounded(c.Dense), rounded(c.Lexical)}; !alone(c) && legs != [2]any{} {
				one = append(one, legs[0], legs[1])
			}
			lines[i].Found = append(lines[i].Found, one)
		}
	}
	return json.Marshal(lines)
}

// alone reports whether a candidate has the score of the one leg that was asked.
func alone(c Scored) bool {
	noDense, noLexical := math.IsNaN(float64(c.Dense)), math.IsNaN(float64(c.Lexical))
	return noLexical && c.Dense == c.Score || noDense && c.Lexical == c.Score
}

// rounded is a leg's score; nil: it gave none.
func rounded(score float32) any {
	if math.IsNaN(float64(score)) || math.IsInf(float64(score), 0) {
		return nil
	}
	return math.Round(float64(score)*1e4) / 1e4
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Lists) UnmarshalJSON(text []byte) error {
	var lines []listLine
	if err := json.Unmarshal(text, &lines); err != nil {
		return err
	}
	*l = nil
	var known []Scored
	for _, line := range lines {
		list := List{Stage: line.Stage, Whole: line.Whole}
		for _, one := range line.Found {
			c, err := scoredOf(one, &known)
			if err != nil {
				return err
			}
			list.Found = append(list.Found, c)
		}
		*l = append(*l, list)
	}
	return nil
}

// scoredOf reads a candidate, which is added to those that are known.
func scoredOf(one []json.RawMessage, known *[]Scored) (c Scored, err error) {
	if len(one) < 2 {
		return c, fmt.Errorf("a candidate has an id and a score, and not %d values", len(one))
	}
	above := 0
	if json.Unmarshal(one[0], &above) == nil {
		if above < 0 || above >= len(*known) {
			return c, fmt.Errorf("no list above has a candidate %d", above)
		}
		c = (*known)[above]
		return c, json.Unmarshal(one[1], &c.Score)
	}
	c.Dense, c.Lexical = sdk.Unscored, sdk.Unscored
	if err := json.Unmarshal(one[0], &c.ID); err != nil {
		return c, err
	}
	if err := json.Unmarshal(one[1], &c.Score); err != nil {
		return c, err
	}
	for i, leg := range []*float32{&c.Dense, &c.Lexical} {
		if len(one) < 4 || string(one[2+i]) == "null" {
			continue
		}
		if err := json.Unmarshal(one[2+i], leg); err != nil {
			return c, err
		}
	}
	*known = append(*known, c)
	return c, nil
}

// UnmarshalJSON implements json.Unmarshaler: an older racflow kept an id and a score.
func (s *Scored) UnmarshalJSON(text []byte) error {
	var one []json.RawMessage
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	var err error
	*s, err = scoredOf(one, new([]Scored))
	return err
}
