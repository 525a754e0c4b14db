package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Gold is a passage that should be found for a row.
type Gold struct {
	// IDs are the entries that hold the passage: one, or several that are as
	// good, of which any will do.
	IDs []string
	// Grade is how relevant it is; 1 where the row does not say. At 0 it was
	// judged and is not relevant.
	Grade float64
}

// goldOf reads ids that are separated by spaces, each with a :GRADE or without.
// What follows the last colon is a grade only where it is a number.
func goldOf(text string) ([]Gold, error) {
	var all []Gold
	for _, word := range strings.Fields(text) {
		g := Gold{IDs: []string{word}, Grade: 1}
		if at := strings.LastIndexByte(word, ':'); at > 0 {
			if grade, err := strconv.ParseFloat(word[at+1:], 64); err == nil {
				g = Gold{IDs: []string{word[:at]}, Grade: grade}
			}
		}
		if err := g.check(); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// goldOfJSON reads a list of passages. Each is an id, a list of ids of which any
// will do, or an object {"id": id or list, "grade": number}. A passage alone
// needs no list.
func goldOfJSON(raw json.RawMessage) ([]Gold, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	list := []json.RawMessage{raw}
	if raw[0] == '[' {
		list = nil
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	}
	var all []Gold
	for _, element := range list {
		g := Gold{Grade: 1}
		if element[0] == '{' {
			var object struct {
				ID    json.RawMessage `json:"id"`
				Grade *float64        `json:"grade"`
			}
			if err := json.Unmarshal(element, &object); err != nil {
				return nil, errors.New(`a gold passage as an object reads {"id": "...", "grade": 1}`)
			}
			if object.Grade != nil {
				g.Grade = *object.Grade
			}
			element = object.ID
		}
		var err error
		if g.IDs, err = idsOf(element); err != nil {
			return nil, err
		}
		if err := g.check(); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// idsOf reads an id or a list of them. Numbers stay as they are written.
func idsOf(raw json.RawMessage) ([]string, error) {
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		list = nil
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	}
	var ids []string
	for _, r := range list {
		var id string
		switch {
		case len(r) > 0 && strings.IndexByte("-0123456789", r[0]) >= 0:
			id = string(r)
		case len(r) == 0 || r[0] != '"' || json.Unmarshal(r, &id) != nil || id == "":
			return nil, errors.New("a gold passage is the id of an entry, a list of ids of which any will do, or an object with id and grade")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (g Gold) check() error {
	switch {
	case len(g.IDs) == 0:
		return errors.New("a gold passage has no id")
	case !(g.Grade >= 0) || math.IsInf(g.Grade, 0):
		return fmt.Errorf("the grade of %q is %v; it is a number from 0 on", g.IDs[0], g.Grade)
	}
	return nil
}
