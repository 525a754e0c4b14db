package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/sdk"
)

// Labels describes how rows hold their labels.
type Labels struct {
	sdk.LabelForm
	Separator string   `json:"separator,omitempty"`     // between the labels of a set written as a text; empty: semicolon
	Columns   []string `json:"level_columns,omitempty"` // of the levels, from the top down; nil: Mapping.Label has the label
}

// ErrSeveralLabels says that a row has a list of several labels.
var ErrSeveralLabels = errors.New("several labels")

// text converts a text to a row's label.
func (l Labels) text(name, text string) (string, error) {
	if !l.Many {
		return l.Canonical(text), nil
	}
	return l.list(name, strings.Split(text, cmp.Or(l.Separator, ";")))
}

// list converts several texts to a row's label.
func (l Labels) list(name string, texts []string) (string, error) {
	switch {
	case l.Many && len(texts) == 0:
		return sdk.NoLabels, nil
	case l.Many:
	case len(texts) == 0:
		return "", nil
	case len(texts) == 1:
		return l.Canonical(texts[0]), nil
	default:
		return "", fmt.Errorf("%q holds %w, and a row has one: write labels = \"many\" in the source block, or take the first of each row with %q in place of %[1]q", name, ErrSeveralLabels, name+"[0]")
	}
	for _, label := range texts {
		if label = strings.TrimSpace(label); strings.Contains(label, sdk.LabelSeparator) {
			return "", fmt.Errorf("%q: the label %q contains %q, which stands between the labels of a set: write it otherwise", name, label, sdk.LabelSeparator)
		}
	}
	return l.Canonical(strings.Join(texts, sdk.LabelSeparator)), nil
}

// path converts levels to a row's label. Only levels at the end may be empty.
func (l Labels) path(levels []string) (string, error) {
	for len(levels) > 0 && l.Canonical(levels[len(levels)-1]) == "" {
		levels = levels[:len(levels)-1]
	}
	for i, level := range levels {
		levels[i] = l.Canonical(level)
		switch {
		case levels[i] == "":
			return "", fmt.Errorf("%q is empty, and a level below it is not", l.Columns[i])
		case strings.Contains(level, l.Levels):
			return "", fmt.Errorf("%q: %q contains %q, which stands between levels: give levels = \"...\" with what no label contains", l.Columns[i], level, l.Levels)
		}
	}
	return strings.Join(levels, l.Levels), nil
}

// respelt returns the first of a row's labels that is read in another spelling; empty: none. Blanks beside
// separators of a set, or around a level, do not count.
func (l Labels) respelt(texts []string) string {
	for _, text := range texts {
		if l.Many || l.Columns != nil {
			text = strings.TrimSpace(text)
		}
		if label := (sdk.LabelForm{}).Canonical(text); label != text && label != "" {
			return text
		}
	}
	return ""
}

// labelOf returns the label in a value: a text, a number, or a list of these. It keeps an earlier error of the
// row.
func (l Labels) labelOf(name string, value any, before error) (label, respelt string, err error) {
	var texts []string
	ok := true
	take := func(value any) {
		text, is := textOf(value, true)
		texts, ok = append(texts, text), ok && is
	}
	list, isList := value.(json.RawMessage)
	if isList = isList && list[0] == '['; isList {
		var all []rows.JSONMember
		if all, err = rows.JSONMembers(list, true); err != nil {
			return "", "", cmp.Or(before, fmt.Errorf("%q: %w", name, err))
		}
		for _, v := range all {
			take(v.Value)
		}
	} else {
		take(value)
	}
	switch {
	case !ok:
		err = notString(name, value)
	case isList:
		label, err = l.list(name, texts)
	default:
		label, err = l.text(name, texts[0])
	}
	if l.Many && !isList {
		texts = strings.Split(texts[0], cmp.Or(l.Separator, ";"))
	}
	return label, l.respelt(texts), cmp.Or(before, err)
}

// Renames maps labels to their new names.
type Renames map[string]string

// Of returns the new name of a label, or the label itself.
func (r Renames) Of(label string) string {
	if to, ok := r[label]; ok {
		return to
	}
	return label
}

// In returns the new names of a label, or of the labels in a set.
func (r Renames) In(f sdk.LabelForm, label string) string {
	if len(r) == 0 || !f.Many {
		return r.Of(label)
	}
	labels := f.Split(label)
	for i, one := range labels {
		labels[i] = r.Of(one)
	}
	return sdk.JoinLabels(labels)
}
