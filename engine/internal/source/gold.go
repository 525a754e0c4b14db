package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// Gold is a passage that a search for a row should find.
type Gold struct {
	// IDs are the entries that hold the passage: one entry, or several equally good ones, of which
	// any suffices. With a Quote they are documents.
	IDs []string
	// Quote is a literal part of the passage: any entry of the document that contains it is the
	// passage, however the document is chunked. White space counts as one space.
	Quote string
	// Grade is the relevance; 1 if the row gives none. 0: judged as not relevant.
	Grade float64
}

// Is reports whether an entry holds the passage.
func (g Gold) Is(id string, meta sdk.Meta, text string) bool {
	if g.Quote == "" {
		return slices.Contains(g.IDs, id)
	}
	if document, ok := meta["document"].(string); ok {
		id = document
	}
	return slices.Contains(g.IDs, id) && strings.Contains(spaced(text), g.Quote)
}

func (g Gold) String() string {
	if g.Quote == "" {
		return g.IDs[0]
	}
	return fmt.Sprintf("%s%q", g.IDs[0], g.Quote)
}

// spaced replaces each run of white space by one space.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }

// goldOf parses passages separated by spaces: ids, or DOCUMENT"QUOTE", each with or without a
// :GRADE. The part after the last colon is a grade only if it is a number.
func goldOf(text string) ([]Gold, error) {
	var all []Gold
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word, quote string
		if word, quote, text = nextGold(text); quote != "" {
			all = append(all, Gold{IDs: []string{word}, Quote: quote, Grade: 1})
			grade := strings.IndexAny(text+" ", " \t")
			if n, err := strconv.ParseFloat(strings.TrimPrefix(text[:grade], ":"), 64); err == nil {
				all[len(all)-1].Grade, text = n, text[grade:]
			}
			if err := all[len(all)-1].check(); err != nil {
				return nil, err
			}
			continue
		}
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

// nextGold cuts an id, or a document with a quote, off a text. An unclosed quotation mark belongs
// to the id.
func nextGold(text string) (word, quote, rest string) {
	end := strings.IndexAny(text+" ", " \t\n\r")
	if at := strings.IndexByte(text[:end], '"'); at > 0 {
		if quote, rest, closed := strings.Cut(text[at+1:], `"`); closed && strings.TrimSpace(quote) != "" {
			return text[:at], spaced(quote), rest
		}
	}
	return text[:end], "", text[end:]
}

// goldOfJSON parses a list of passages. Each passage is an id, a list of ids of which any suffices,
// or an object {"id": id or list, "quote": text, "grade": number}. A single passage needs no list.
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
				Quote string          `json:"quote"`
				Grade *float64        `json:"grade"`
			}
			if err := json.Unmarshal(element, &object); err != nil {
				return nil, errors.New(`a gold passage as an object reads {"id": "...", "grade": 1}`)
			}
			if object.Grade != nil {
				g.Grade = *object.Grade
			}
			g.Quote, element = spaced(object.Quote), object.ID
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

// idsOf parses an id or a list of ids. Numbers keep their spelling.
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
