package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// object reads a line of JSONL: one answer, or the votes of a run's result.
func (f *file) object(line []byte) ([]row, error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(line, &top) != nil || top == nil {
		return nil, errors.New("it is not a JSON object")
	}
	id, err := text(top, "id")
	if err != nil {
		return nil, err
	}
	var votes []map[string]json.RawMessage
	if raw, ok := top["votes"]; !ok {
		votes = append(votes, top)
	} else if json.Unmarshal(raw, &votes) != nil {
		return nil, errors.New(`"votes" is not a list of objects`)
	}
	rows := make([]row, 0, len(votes))
	for _, vote := range votes {
		r := row{id: id, voter: f.Voter}
		if _, ok := vote["voter"]; ok {
			if r.voter, err = text(vote, "voter"); err != nil {
				return nil, err
			}
		}
		if _, ok := vote[f.Column]; !ok {
			return nil, fmt.Errorf("there is no %q in it; column = \"...\" in config names another property for the answers", f.Column)
		}
		if r.answer, err = text(vote, f.Column); err != nil {
			return nil, err
		}
		if r.weight, err = text(vote, "weight"); err != nil {
			return nil, err
		}
		r.none = r.answer == "" && string(vote["accepted"]) == "true" // a run's vote for none of the labels
		rows = append(rows, r)
	}
	return rows, nil
}

// text returns a property: a string, or a number as it is written.
func text(object map[string]json.RawMessage, name string) (value string, err error) {
	raw := string(object[name])
	switch {
	case raw == "" || raw == "null":
		return "", nil
	case raw[0] == '"' && json.Unmarshal([]byte(raw), &value) == nil:
		return strings.TrimSpace(value), nil
	case strings.ContainsAny(raw[:1], "-0123456789"):
		return raw, nil
	}
	return "", fmt.Errorf("%q is neither a text nor a number", name)
}
