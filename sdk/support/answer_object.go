package support

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// lists reports whether the prompt asks for a list of labels.
func (r *reader) lists() bool { return r.Many || slices.Contains(r.fields, sdk.LabelsProperty) }

// property returns the name of the property that holds the answer.
func (r *reader) property() string {
	if r.lists() {
		return sdk.LabelsProperty
	}
	return sdk.LabelProperty
}

// object reads the answer to a prompt that asks for a JSON object: the first object of a text that
// has the answer's property.
func (r *reader) object(text string) reading {
	name := r.property()
	for fields := range objects(text) {
		for _, f := range slices.Backward(fields) {
			if f.name == name {
				return r.field(fields, f)
			}
		}
	}
	if !r.Exact {
		if read, ok := r.inObject(text); ok {
			return read
		}
	}
	if r.Many && r.maps() {
		if read := r.set(text); r.knows(read) {
			return read.how("from text")
		}
	}
	if r.maps() && !r.lists() {
		line := reader{AnswerOptions: r.AnswerOptions, names: r.names}
		line.Nearest = 0
		if read := line.text(text); line.knows(read) {
			return read.how("from text")
		}
	}
	return unreadable(fmt.Sprintf("not a JSON object with %q", name))
}

// inObject reads labels from JSON in another form than the prompt asked for: a property in another
// case or with another name, the arguments of a tool call, a list alone.
func (r *reader) inObject(text string) (reading, bool) {
	for fields := range objects(text) {
		if read, ok := r.answerIn(fields); ok {
			return read, true
		}
		if read, ok := r.inCall(fields); ok {
			return read, true
		}
	}
	if !r.maps() {
		return reading{}, false
	}
	for fields := range objects(text) {
		if read, ok := r.only(fields); ok {
			return read.how("from another property"), true
		}
	}
	if read, ok := r.listAlone(text); ok {
		return read, true
	}
	return r.repaired(text)
}

// answerIn reads labels from the first property of an object that holds the answer.
func (r *reader) answerIn(fields []field) (reading, bool) {
	for _, f := range fields {
		if !isAnswer(f.name) {
			continue
		}
		if read := r.field(fields, f); r.fields != nil || r.knows(read) {
			if f.name != r.property() && r.knows(read) {
				read = read.how("from another property")
			}
			return read, true
		}
	}
	return reading{}, false
}

// inCall reads labels from the arguments of a tool call, which are JSON in a string.
func (r *reader) inCall(fields []field) (reading, bool) {
	for _, f := range fields {
		var inner string
		if f.value[0] != '"' || json.Unmarshal(f.value, &inner) != nil || !strings.HasPrefix(inner, "{") {
			continue
		}
		arguments, err := fieldsAt(inner, 0)
		if err != nil {
			continue
		}
		for _, a := range arguments {
			if a.name != r.property() {
				continue
			}
			if read := r.field(arguments, a); r.knows(read) {
				return read.at(f.from, f.from+len(f.value)).how("from a tool call"), true
			}
		}
	}
	return reading{}, false
}

// listAlone reads labels from a text that is only a list, with or without a Markdown fence around it.
func (r *reader) listAlone(text string) (reading, bool) {
	bare := []byte(text)
	for _, m := range fenceLine().FindAllStringIndex(text, -1) {
		space(bare[m[0]:m[1]])
	}
	from, to := trim(string(bare), 0, len(bare))
	if !strings.HasPrefix(text[from:to], "[") || !json.Valid([]byte(text[from:to])) {
		return reading{}, false
	}
	read := r.values(json.RawMessage(text[from:to]), from)
	if r.knows(read) && r.lists() {
		read = read.how("from a list alone")
	}
	return read, r.knows(read)
}

// isAnswer reports whether a property holds the answer, by its name in any case.
func isAnswer(name string) bool {
	return slices.Contains([]string{fold(sdk.LabelProperty), fold(sdk.LabelsProperty)}, fold(name))
}

// trailingComma finds commas behind the last value. It also matches strings, so that they are left
// alone.
var trailingComma = Pattern(`(?s)"(?:[^"\\]|\\.)*"|,\s*[}\]]`)

// repaired reads labels from objects with trailing commas, and from an object that the end of the
// text cuts off. In the latter it reads only a property that holds the answer, if its value is
// complete. All objects must say the same, and nothing around them may deny it or name another label.
//
// A library that repairs JSON does not help here: it completes a label that was cut off, makes one
// text of "a" or "b", and does not return the position of a value.
func (r *reader) repaired(text string) (read reading, ok bool) {
	begin, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')+1
	if begin < 0 || len(text) > maxText {
		return reading{}, false
	}
	text = text[:begin] + trailingComma().ReplaceAllStringFunc(text[begin:], func(part string) string {
		if part[0] == ',' {
			return " " + part[1:]
		}
		return part
	})
	for fields, err := range begun(text) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			end = len(text)
		} else if err != nil {
			return reading{}, false
		}
		for _, one := range r.said(fields, err == nil) {
			if !r.knows(one) || ok && !slices.EqualFunc(one.labels, read.labels, func(a, b foundLabel) bool { return a.label == b.label }) {
				return reading{}, false
			}
			read, ok = one, true
		}
	}
	around := text[:begin] + cutOut + text[end:]
	return read.how("repaired"), ok && len(read.labels) > 0 && !denies(around) && !r.others(around, read.labels[0].label)
}

// said reads the properties of an object that hold the answer. If the object is whole and has no such
// property, said reads the only property whose value is a label.
func (r *reader) said(fields []field, whole bool) (all []reading) {
	for _, f := range fields {
		switch {
		case !isAnswer(f.name):
		case f.value == nil:
			all = append(all, unreadable("it was cut off"))
		case f.name == r.property():
			all = append(all, r.field(fields, f))
		default:
			all = append(all, r.field(fields, f).how("from another property"))
		}
	}
	if all == nil && whole {
		if read, ok := r.only(fields); ok {
			all = append(all, read.how("from another property"))
		}
	}
	return all
}

// knows reports whether all labels of a reading are allowed by the prompt, or, for a set, some of
// them.
func (r *reader) knows(read reading) bool {
	if read.reason != "" || len(r.labels) == 0 {
		return false
	}
	unknown := func(f foundLabel) bool {
		return !slices.Contains(r.labels, f.label) && (f.label != "" || r.none == "")
	}
	if r.Many && len(read.labels) > 0 {
		return slices.ContainsFunc(read.labels, func(f foundLabel) bool { return !unknown(f) })
	}
	return !slices.ContainsFunc(read.labels, unknown)
}

// only reads the only property of an object whose value is a label. No other property may have a
// label as value or name.
func (r *reader) only(fields []field) (read reading, ok bool) {
	for _, f := range fields {
		if _, is := r.folds()[fold(f.name)]; is || denies(f.name) {
			return read, false
		}
		value := r.values(f.value, f.from)
		if !r.knows(value) || len(value.labels) != 1 {
			continue
		}
		if ok && value.labels[0].label != read.labels[0].label {
			return read, false
		}
		read, ok = value, true
		read.explanation = r.explain(fields, f)
	}
	return read, ok
}

// field reads the property that holds the answer.
func (r *reader) field(fields []field, f field) reading {
	read := r.values(f.value, f.from)
	if read.reason == "" {
		read.explanation = r.explain(fields, f)
	}
	return read
}

// maxLabels bounds the number of labels that are read from a list.
const maxLabels = 100

// values reads a label, or a list of labels. A null is no list: the model may not have meant that no
// label fits.
func (r *reader) values(raw json.RawMessage, from int) (read reading) {
	var list []json.RawMessage
	var line string
	is := json.Unmarshal(raw, &list) == nil && list != nil
	switch {
	case !r.lists() && !r.Exact && len(list) == 1:
		return r.value(list[0], from).at(from, from+len(raw)).how("from a list")
	case !r.lists() && !r.Exact && len(list) > 1:
		return unreadable(severalLabels)
	case !r.lists():
		return r.value(raw, from)
	case !is && r.Many && json.Unmarshal(raw, &line) == nil && strings.TrimSpace(line) != "":
		return r.set(line).how("without a list")
	case !is && !r.Exact && raw[0] == '"':
		return r.value(raw, from).how("without a list")
	case !is:
		return unreadable(fmt.Sprintf("%q in the JSON object is not a list", r.property()))
	}
	for _, raw := range list[:min(len(list), maxLabels)] {
		one := r.value(raw, from)
		if one.reason != "" {
			return one
		}
		read.labels = append(read.labels, one.labels...)
	}
	return read
}

// value reads a label. A number is kept as it is written.
func (r *reader) value(raw json.RawMessage, from int) reading {
	var label string
	var number json.Number
	to := from + len(raw)
	switch {
	case raw[0] == '"' && json.Unmarshal(raw, &label) == nil:
		from, to = from+1, to-1
	case raw[0] != '"' && json.Unmarshal(raw, &number) == nil:
		label = number.String()
	default:
		return unreadable(fmt.Sprintf("%q in the JSON object is not a text", r.property()))
	}
	start, end := firstLine(label, 0)
	if start == end {
		return unreadable(fmt.Sprintf("%q in the JSON object is empty", r.property()))
	}
	f := foundLabel{label: label[start:end], from: from, to: to}
	known, ok := r.exact(f.label)
	if ok {
		return r.as(f, known, "")
	}
	if r.maps() {
		if m, ok := r.match(label, unmark(label), start, end); ok {
			return r.as(f, m.label, m.reading)
		}
	}
	return r.close(f)
}

// at sets the position of the labels.
func (read reading) at(from, to int) reading {
	for i := range read.labels {
		read.labels[i].from, read.labels[i].to = from, to
	}
	return read
}

// how adds to the description of how the labels were read.
func (read reading) how(how string) reading {
	for i := range read.labels {
		read.labels[i].reading = strings.Trim(how+", "+read.labels[i].reading, ", ")
	}
	return read
}

// maxExplanation bounds the explanation of an answer, in bytes.
const maxExplanation = 4096

// explain returns the texts of the other properties if Options want them.
func (r *reader) explain(fields []field, label field) string {
	if !r.Reasons {
		return ""
	}
	var names, texts []string
	for _, f := range fields {
		var text string
		if f.from == label.from || json.Unmarshal(f.value, &text) != nil || strings.TrimSpace(text) == "" {
			continue
		}
		names, texts = append(names, f.name), append(texts, strings.TrimSpace(text))
	}
	if len(texts) > 1 {
		for i := range texts {
			texts[i] = names[i] + ": " + texts[i]
		}
	}
	text := strings.Join(texts, "\n")
	if len(text) > maxExplanation {
		text = strings.ToValidUTF8(text[:maxExplanation], "") + "…"
	}
	return text
}

// field is a property of a JSON object.
type field struct {
	name  string
	value json.RawMessage // nil: it was cut off
	from  int             // position of the value
}

// maxObjects bounds the number of opening braces to try: a text that opens many objects and closes
// none would take quadratic time.
const maxObjects = 64

// objects yields the objects in a text, outer objects before inner ones.
func objects(text string) iter.Seq[[]field] {
	return func(yield func([]field) bool) {
		for fields, err := range begun(text) {
			if err == nil && !yield(fields) {
				return
			}
		}
	}
}

// begun yields everything in a text that could be an object, as fieldsAt reads it.
func begun(text string) iter.Seq2[[]field, error] {
	return func(yield func([]field, error) bool) {
		from := 0
		for range maxObjects {
			at := strings.IndexByte(text[from:], '{')
			if at < 0 {
				return
			}
			from += at + 1
			if !yield(fieldsAt(text, from-1)) {
				return
			}
		}
	}
}

// fieldsAt reads the object that begins at a position. With an error, it returns the properties
// before the error.
func fieldsAt(text string, at int) (fields []field, err error) {
	d := json.NewDecoder(strings.NewReader(text[at:]))
	if _, err = d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fields, err
		}
		var f field
		f.name, _ = key.(string) // all keys are strings
		err = d.Decode(&f.value)
		f.from = at + int(d.InputOffset()) - len(f.value)
		fields = append(fields, f)
		if err != nil {
			return fields, err
		}
	}
	_, err = d.Token()
	if last := len(fields) - 1; err != nil && last >= 0 && !strings.ContainsAny(string(fields[last].value[len(fields[last].value)-1:]), `"]}`) {
		fields[last].value = nil // more digits may have followed
	}
	return fields, err
}
