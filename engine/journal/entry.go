package journal

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/sdk"
)

// entry is a line of the journal.
type entry struct {
	Line       int         `json:"line"`
	ID         string      `json:"id"`
	Answer     string      `json:"answer"`
	Agreement  float64     `json:"agreement"`
	Flagged    bool        `json:"flagged"`
	Reason     string      `json:"reason"`
	Votes      []vote      `json:"votes"`
	Citations  []citation  `json:"citations"`
	Tokens     [3]uint64   `json:"tokens"` // in, cached of these, out
	Candidates []candidate `json:"candidates"`
	Missing    []string    `json:"missing"` // voters that the answer is without
	Stage      string      `json:"stage"`
	Error      string      `json:"error"`
}

type vote struct {
	Voter    string  `json:"voter"`
	Answer   string  `json:"answer"`
	Weight   float64 `json:"weight"`
	Accepted bool    `json:"accepted"`
	Reason   string  `json:"reason"`
}

type citation struct {
	Number int      `json:"number"`
	ID     string   `json:"id"`
	Meta   sdk.Meta `json:"meta,omitempty"` // of outcome.Origins
}

type candidate struct {
	ID      string   `json:"id"`
	Text    string   `json:"text,omitempty"`
	Label   string   `json:"label,omitempty"`
	Context string   `json:"context,omitempty"`
	Meta    sdk.Meta `json:"meta,omitempty"`
	Score   float32  `json:"score"`
	Dense   *float32 `json:"dense,omitempty"` // nil: not scored
	Lexical *float32 `json:"lexical,omitempty"`
}

// appendEntry writes a result as a line. It is done for every item of every
// run, so it does not go through reflection but where candidates are the
// answer.
func appendEntry(b []byte, r outcome.Result) ([]byte, error) {
	b = append(b, `{"line":`...)
	b = strconv.AppendInt(b, int64(r.Line), 10)
	b = appendText(append(b, `,"id":`...), r.ID)
	var err error
	if r.Failure != nil {
		b = appendText(append(b, `,"stage":`...), r.Failure.Stage)
		b = appendText(append(b, `,"error":`...), r.Failure.Err.Error())
	} else {
		b, err = appendAnswer(b, r)
	}
	return append(b, "}\n"...), err
}

// appendAnswer writes what the stages made of an item.
func appendAnswer(b []byte, r outcome.Result) ([]byte, error) {
	b = appendText(append(b, `,"answer":`...), r.Answer)
	b = appendNumber(append(b, `,"agreement":`...), r.Agreement)
	if r.Flagged {
		b = append(b, `,"flagged":true`...)
	}
	if r.Reason != "" {
		b = appendText(append(b, `,"reason":`...), r.Reason)
	}
	b = append(b, `,"votes":[`...)
	for i, v := range outcome.Heaviest(r.Votes) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"voter":`...), v.Voter)
		b = appendText(append(b, `,"answer":`...), v.Answer)
		b = appendNumber(append(b, `,"weight":`...), v.Weight)
		b = strconv.AppendBool(append(b, `,"accepted":`...), v.Accepted)
		if v.Reason != "" {
			b = appendText(append(b, `,"reason":`...), v.Reason)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if len(r.Citations) > 0 {
		text, err := json.Marshal(citationsOf(r.Citations))
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"citations":`...), text...)
	}
	if u := r.Usage; u != (sdk.Usage{}) {
		b = strconv.AppendUint(append(b, `,"tokens":[`...), u.InputTokens, 10)
		b = strconv.AppendUint(append(b, ','), u.CachedTokens, 10)
		b = strconv.AppendUint(append(b, ','), u.OutputTokens, 10)
		b = append(b, ']')
	}
	if r.RetrievalOnly {
		candidates := make([]candidate, len(r.Candidates))
		for i, c := range r.Candidates {
			candidates[i] = candidate{c.ID, c.Text, c.Label, c.Context, c.Meta, c.Score, scored(&c.Dense), scored(&c.Lexical)}
		}
		text, err := json.Marshal(candidates)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"candidates":`...), text...)
	}
	if len(r.Missing) > 0 {
		text, err := json.Marshal(r.Without())
		if err != nil {
			return nil, err
		}
		b = append(append(b, `,"missing":`...), text...)
	}
	return b, nil
}

// citationsOf are citations as they are kept: who reads the output again needs no
// more of the passages.
func citationsOf(given []outcome.Citation) []citation {
	all := make([]citation, len(given))
	for i, c := range given {
		all[i] = citation{c.Number, c.Passage.ID, nil}
		for _, key := range outcome.Origins {
			if value, ok := c.Passage.Meta[key]; ok {
				if all[i].Meta == nil {
					all[i].Meta = sdk.Meta{}
				}
				all[i].Meta[key] = value
			}
		}
	}
	return all
}

func scored(score *float32) *float32 {
	if math.IsNaN(float64(*score)) {
		return nil
	}
	return score
}

// appendText appends a JSON string.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string always encodes
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

// appendNumber appends the shortest text that reads as the same number.
func appendNumber(b []byte, x float64) []byte {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64)
}

// result is what the line says of an item that did not fail.
func (e *entry) result() outcome.Result {
	r := outcome.Result{
		Answer: e.Answer, Agreement: e.Agreement, Flagged: e.Flagged, Reason: e.Reason,
		Usage: sdk.Usage{InputTokens: e.Tokens[0], CachedTokens: e.Tokens[1], OutputTokens: e.Tokens[2]},
	}
	for _, v := range e.Votes {
		r.Votes = append(r.Votes, outcome.Vote(v))
	}
	for _, c := range e.Citations {
		r.Citations = append(r.Citations, outcome.Citation{
			Number: c.Number, Passage: sdk.Candidate{ID: c.ID, Meta: c.Meta, Dense: sdk.Unscored, Lexical: sdk.Unscored},
		})
	}
	for _, c := range e.Candidates {
		found := sdk.Candidate{
			ID: c.ID, Text: c.Text, Label: c.Label, Context: c.Context, Meta: c.Meta,
			Score: c.Score, Dense: sdk.Unscored, Lexical: sdk.Unscored,
		}
		if c.Dense != nil {
			found.Dense = *c.Dense
		}
		if c.Lexical != nil {
			found.Lexical = *c.Lexical
		}
		r.Candidates = append(r.Candidates, found)
	}
	return r
}
