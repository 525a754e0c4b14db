package scaffold

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/internal/knowledge/rows"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
)

// export is a form, other than a table, in which another program writes texts and labels. Its rows are
// written beside the pipeline as JSONL.
type export struct {
	name, what string
	folder     bool                         // a folder, not a file
	read       func(*data, *converted) bool // false: the data has another form
}

// exports lists the known forms. The first one that fits is used.
var exports = []export{
	{"label-studio", "an export of Label Studio", false, each(labelStudio)},
	{"chat", "chats: the last question is the text, and what was answered to it the label", false, each(chat)},
	{"prodigy", "annotations of Prodigy", false, each(prodigy)},
	{"cats", "examples of spaCy: the category with a score of at least 0.5 is the label", false, each(categories)},
	{"rasa", "training data of Rasa", false, rasa},
	{"intents", "intents with their phrases", false, each(intents)},
	{"fasttext", "lines of fastText", false, fastText},
	{"folders", "a folder for each label", true, labelFolders},
}

// asDocuments names the form of files and folders that hold documents, whatever they look like.
const asDocuments = "documents"

// Forms names the forms beside the formats of a source.
func Forms() []string {
	names := []string{asDocuments}
	for _, e := range exports {
		names = append(names, e.name)
	}
	return names
}

// maxExport is the largest export in bytes: it is read into memory.
const maxExport = 256 << 20

// data is the content of a file or folder.
type data struct {
	folder  string // empty: it is a file
	text    []byte
	records []json.RawMessage // of JSON: lines, elements, or elements of the only array in an object
}

// converted holds the rows of an export.
type converted struct {
	rows bytes.Buffer // JSONL
	n    int
	left []string // notes on what was left out
}

// field is a column of a row: a text, a number, or a list of labels.
type field struct {
	name  string
	value any
}

// add adds a row. It renames the second of two fields with the same name.
func (c *converted) add(row ...field) {
	c.rows.WriteByte('{')
	named := map[string]bool{}
	for i, f := range row {
		for named[f.name] {
			f.name += "_"
		}
		named[f.name] = true
		if i > 0 {
			c.rows.WriteByte(',')
		}
		name, _ := json.Marshal(f.name) // texts, numbers and lists of them always encode
		value, _ := json.Marshal(f.value)
		c.rows.Write(name)
		c.rows.WriteByte(':')
		c.rows.Write(value)
	}
	c.rows.WriteString("}\n")
	c.n++
}

// leave notes, once, what was left out.
func (c *converted) leave(what string) {
	if !slices.Contains(c.left, what) {
		c.left = append(c.left, what)
	}
}

// exportIn detects the form of a file or folder, or uses the named one. nil: no form fits.
func exportIn(path string, folder bool, name string) (*export, *converted) {
	d, ext := &data{folder: path}, strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))
	if !folder {
		if f := source.FormatOf(path); name == "" && f != source.JSON && f != source.JSONL && !slices.Contains([]string{"", ".txt", ".yml", ".yaml", ".ft", ".train", ".valid", ".test"}, ext) {
			return nil, nil
		}
		text, err := readText(path)
		if err != nil {
			return nil, nil // its reader reports why
		}
		d = &data{text: text, records: recordsOf(text)}
	}
	for _, e := range exports {
		c := &converted{}
		if e.folder == folder && (name == "" || name == e.name) && e.read(d, c) && c.n > 0 {
			return &e, c
		}
	}
	return nil, nil
}

// readText reads and decodes a text of at most maxExport bytes.
func readText(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	unpacked, _, err := rows.Unpack(bufio.NewReaderSize(in, rows.BufferSize))
	if err != nil {
		return nil, err
	}
	text, err := rows.Decode(unpacked, "", true)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(io.LimitReader(text, maxExport+1))
	if err == nil && len(all) > maxExport {
		err = fmt.Errorf("%s is longer than %d MiB: split it", path, maxExport>>20)
	}
	return all, err
}

// recordsOf returns the values in a JSON text: those of its lines, or the elements of its only array.
func recordsOf(text []byte) (all []json.RawMessage) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		all = append(all, value)
	}
	if len(all) != 1 {
		return all
	}
	var arrays []json.RawMessage
	for _, m := range objectOf(all[0]) {
		if in := elements(m.Value); len(in) > 0 && in[0][0] == '{' && m.Name != "messages" {
			arrays = append(arrays, m.Value)
		}
	}
	if len(arrays) == 1 {
		all = arrays
	}
	if in := elements(all[0]); in != nil {
		return in
	}
	return all
}

// object holds the members of a JSON object, in order.
type object []rows.JSONMember

func objectOf(raw json.RawMessage) object {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	members, err := rows.JSONMembers(raw, false)
	if err != nil {
		return nil
	}
	return members
}

func elements(raw json.RawMessage) (all []json.RawMessage) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	members, err := rows.JSONMembers(raw, true)
	if err != nil {
		return nil
	}
	for _, m := range members {
		all = append(all, m.Value)
	}
	return all
}

// get returns a member: the first that exists of several names.
func (o object) get(names ...string) json.RawMessage {
	for _, name := range names {
		for _, m := range o {
			if m.Name == name {
				return m.Value
			}
		}
	}
	return nil
}

// text returns a member that is a text.
func (o object) text(names ...string) string { return textOf(o.get(names...)) }

func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text) // anything else counts as no text
	return text
}

// texts returns the elements of an array of texts; ok: they all are texts, and there is at least one.
func texts(raw json.RawMessage) (all []string, ok bool) {
	in := elements(raw)
	for _, e := range in {
		if e[0] != '"' {
			return nil, false
		}
		all = append(all, textOf(e))
	}
	return all, len(in) > 0
}

// scalars returns the members other than objects and arrays, except some.
func (o object) scalars(without ...string) (row []field) {
	for _, m := range o {
		if c := m.Value[0]; c != '{' && c != '[' && !strings.HasPrefix(m.Name, "_") && !slices.Contains(without, m.Name) {
			row = append(row, field{m.Name, m.Value})
		}
	}
	return row
}

// labels returns one label, or a list of several.
func labels(all []string) any {
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// each reads records with a function that returns false for a record of another form.
func each(read func(object, *converted) bool) func(*data, *converted) bool {
	return func(d *data, c *converted) bool {
		others := 0
		for i, raw := range d.records {
			if o := objectOf(raw); o == nil || !read(o, c) {
				if others++; i == 0 {
					return false
				}
				c.leave("records of another form were left out")
			}
		}
		return 2*others <= len(d.records)
	}
}

func labelStudio(o object, c *converted) bool {
	task, annotations := objectOf(o.get("data")), o.get("annotations", "completions")
	if task == nil || len(annotations) == 0 || annotations[0] != '[' {
		return false
	}
	row := task.scalars()
	if id := o.get("id"); id != nil && task.get("id") == nil {
		row = append([]field{{"id", id}}, row...)
	}
	n := 0
	for _, a := range elements(annotations) {
		o := objectOf(a)
		if string(o.get("was_cancelled")) == "true" {
			continue
		}
		if n++; n > 1 {
			c.leave("further annotations of a task were left out")
			break
		}
		for _, r := range elements(o.get("result")) {
			o := objectOf(r)
			if chosen, ok := texts(objectOf(o.get("value")).get("choices")); ok {
				row = append(row, field{o.text("from_name"), labels(chosen)})
			} else {
				c.leave("annotations that are no choice were left out")
			}
		}
	}
	c.add(row...)
	return true
}

// chat reads chats in the forms of OpenAI, ShareGPT and Gemini.
func chat(o object, c *converted) bool {
	turns := elements(o.get("messages", "conversations", "contents"))
	question, answer, questions := "", "", 0
	for _, t := range turns {
		turn := objectOf(t)
		said := turn.get("content", "value", "parts")
		text := textOf(said)
		for _, part := range elements(said) {
			text += objectOf(part).text("text")
		}
		switch turn.text("role", "from") {
		case "user", "human":
			question, answer, questions = text, "", questions+1
		case "assistant", "gpt", "model":
			answer = text
		case "system", "developer", "tool", "function":
		default:
			return false
		}
	}
	if questions == 0 {
		return false
	}
	if questions > 1 {
		c.leave("of several questions in a chat, the last counts")
	}
	c.add(append([]field{{"text", question}, {"answer", strings.TrimSpace(answer)}}, o.scalars("text", "answer")...)...)
	return true
}

func prodigy(o object, c *converted) bool {
	decision, chosen := o.text("answer"), o.get("accept")
	if o.text("text") == "" || !slices.Contains([]string{"accept", "reject", "ignore"}, decision) || chosen == nil && o.get("label", "_task_hash", "options") == nil {
		return false
	}
	if decision != "accept" {
		c.leave("texts that were not accepted were left out")
		return true
	}
	row := o.scalars("answer")
	if all, ok := texts(chosen); ok {
		row = append(row, field{"label", labels(all)})
	}
	c.add(row...)
	return true
}

func categories(o object, c *converted) bool {
	scores := objectOf(o.get("cats"))
	if scores == nil || o.text("text") == "" {
		return false
	}
	var all []string
	for _, s := range scores {
		if score, err := strconv.ParseFloat(string(s.Value), 64); string(s.Value) == "true" || err == nil && score >= 0.5 {
			all = append(all, s.Name)
		}
	}
	c.add(append(o.scalars("label"), field{"label", labels(all)})...)
	return true
}

// intents reads a label with its phrases.
func intents(o object, c *converted) bool {
	label := o.text("tag", "intent", "name", "label", "class", "category")
	raw := o.get("patterns", "examples", "utterances", "samples", "phrases")
	phrases, ok := texts(raw)
	if label == "" || !ok && string(raw) != "[]" {
		return false
	}
	for _, phrase := range phrases {
		c.add(field{"text", phrase}, field{"label", label})
	}
	return true
}

// entity is a part of a phrase that Rasa marks, such as [Berlin](city) or [Berlin]{"entity": "city"}.
var entity = regexp.MustCompile(`\[([^\]]+)\](\([^)]*\)|\{[^}]*\}|\[\{[^\]]*\}\])`)

// rasa reads the JSON of Rasa 1 and, of the YAML of later versions, only phrases in a block, one a
// line.
func rasa(d *data, c *converted) bool {
	for _, e := range elements(objectOf(objectOf(d.text).get("rasa_nlu_data")).get("common_examples")) {
		c.add(field{"text", objectOf(e).text("text")}, field{"label", objectOf(e).text("intent")})
	}
	intent, in := "", -1 // in: phrases are indented more than this; -1: no block is open
	for line := range strings.Lines(string(d.text)) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		line = strings.TrimSpace(line)
		name, isIntent := strings.CutPrefix(line, "- intent:")
		phrase, isItem := strings.CutPrefix(line, "- ")
		switch {
		case line == "":
		case in > 0 && indent > in && isItem:
			c.add(field{"text", entity.ReplaceAllString(strings.TrimSpace(phrase), "$1")}, field{"label", intent})
		case isIntent:
			intent, in = strings.Trim(name, ` "'`), -1
		case intent != "" && strings.HasPrefix(line, "examples:") && strings.HasSuffix(line, "|"):
			in = indent
		case indent <= in || isItem:
			intent, in = "", -1
		}
	}
	return c.n > 0
}

// fastText reads lines that start with labels.
func fastText(d *data, c *converted) bool {
	const mark = "__label__"
	if !bytes.Contains(d.text[:min(len(d.text), rows.BufferSize)], []byte(mark)) {
		return false
	}
	others := 0
	for line := range strings.Lines(string(d.text)) {
		var all []string
		line = strings.TrimSpace(line)
		rest := line
		for strings.HasPrefix(rest, mark) {
			label, after, _ := strings.Cut(rest, " ")
			all, rest = append(all, strings.TrimPrefix(label, mark)), strings.TrimSpace(after)
		}
		switch {
		case line == "":
		case len(all) == 0:
			others++
			c.leave("lines without a label were left out")
		default:
			c.add(field{"text", strings.TrimPrefix(rest, ", ")}, field{"label", labels(all)})
		}
	}
	return others <= c.n
}
