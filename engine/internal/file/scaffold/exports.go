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
	"strings"

	"github.com/tidwall/gjson"

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
	records []gjson.Result // of JSON: lines, elements, or elements of the only array in an object
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
func recordsOf(text []byte) (all []gjson.Result) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		all = append(all, gjson.ParseBytes(value))
	}
	if len(all) != 1 {
		return all
	}
	if arrays := arraysIn(all[0], "messages"); len(arrays) == 1 {
		return all[0].Get(gjson.Escape(arrays[0])).Array()
	}
	if all[0].IsArray() {
		return all[0].Array()
	}
	return all
}

// arraysIn names the members of an object that are arrays of objects, but for one.
func arraysIn(o gjson.Result, without string) (names []string) {
	if !o.IsObject() {
		return nil
	}
	o.ForEach(func(name, value gjson.Result) bool {
		if value.IsArray() && value.Get("0").IsObject() && name.Str != without {
			names = append(names, name.Str)
		}
		return true
	})
	return names
}

// first returns the first member that exists of several names.
func first(o gjson.Result, names ...string) (found gjson.Result) {
	for _, name := range names {
		if found = o.Get(name); found.Exists() {
			break
		}
	}
	return found
}

// texts returns the elements of an array of texts; ok: they all are texts, and there is at least one.
func texts(array gjson.Result) (all []string, ok bool) {
	if !array.IsArray() {
		return nil, false
	}
	for _, e := range array.Array() {
		if e.Type != gjson.String {
			return nil, false
		}
		all = append(all, e.Str)
	}
	return all, len(all) > 0
}

// scalars returns the members of an object other than objects and arrays, except some.
func scalars(o gjson.Result, without ...string) (row []field) {
	o.ForEach(func(name, value gjson.Result) bool {
		if value.Type != gjson.JSON && !strings.HasPrefix(name.Str, "_") && !slices.Contains(without, name.Str) {
			row = append(row, field{name.Str, json.RawMessage(value.Raw)})
		}
		return true
	})
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
func each(read func(gjson.Result, *converted) bool) func(*data, *converted) bool {
	return func(d *data, c *converted) bool {
		others := 0
		for i, o := range d.records {
			if !o.IsObject() || !read(o, c) {
				if others++; i == 0 {
					return false
				}
				c.leave("records of another form were left out")
			}
		}
		return 2*others <= len(d.records)
	}
}

func labelStudio(o gjson.Result, c *converted) bool {
	task, annotations := o.Get("data"), first(o, "annotations", "completions")
	if !task.IsObject() || !annotations.IsArray() {
		return false
	}
	row := scalars(task)
	if id := o.Get("id"); id.Exists() && !task.Get("id").Exists() {
		row = append([]field{{"id", json.RawMessage(id.Raw)}}, row...)
	}
	n := 0
	for _, a := range annotations.Array() {
		if a.Get("was_cancelled").Bool() {
			continue
		}
		if n++; n > 1 {
			c.leave("further annotations of a task were left out")
			break
		}
		for _, r := range a.Get("result").Array() {
			if chosen, ok := texts(r.Get("value.choices")); ok {
				row = append(row, field{r.Get("from_name").Str, labels(chosen)})
			} else {
				c.leave("annotations that are no choice were left out")
			}
		}
	}
	c.add(row...)
	return true
}

// chat reads chats in the forms of OpenAI, ShareGPT and Gemini.
func chat(o gjson.Result, c *converted) bool {
	question, answer, questions := "", "", 0
	for _, turn := range first(o, "messages", "conversations", "contents").Array() {
		said := first(turn, "content", "value", "parts")
		text := said.Str
		for _, part := range said.Get("#.text").Array() {
			text += part.Str
		}
		switch first(turn, "role", "from").Str {
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
	c.add(append([]field{{"text", question}, {"answer", strings.TrimSpace(answer)}}, scalars(o, "text", "answer")...)...)
	return true
}

func prodigy(o gjson.Result, c *converted) bool {
	decision, chosen := o.Get("answer").Str, o.Get("accept")
	if o.Get("text").Str == "" || !slices.Contains([]string{"accept", "reject", "ignore"}, decision) || !chosen.Exists() && !first(o, "label", "_task_hash", "options").Exists() {
		return false
	}
	if decision != "accept" {
		c.leave("texts that were not accepted were left out")
		return true
	}
	row := scalars(o, "answer")
	if all, ok := texts(chosen); ok {
		row = append(row, field{"label", labels(all)})
	}
	c.add(row...)
	return true
}

func categories(o gjson.Result, c *converted) bool {
	scores := o.Get("cats")
	if !scores.IsObject() || o.Get("text").Str == "" {
		return false
	}
	var all []string
	scores.ForEach(func(name, score gjson.Result) bool {
		if score.Type == gjson.True || score.Type == gjson.Number && score.Num >= 0.5 {
			all = append(all, name.Str)
		}
		return true
	})
	c.add(append(scalars(o, "label"), field{"label", labels(all)})...)
	return true
}

// intents reads a label with its phrases.
func intents(o gjson.Result, c *converted) bool {
	label := first(o, "tag", "intent", "name", "label", "class", "category").Str
	listed := first(o, "patterns", "examples", "utterances", "samples", "phrases")
	phrases, ok := texts(listed)
	if label == "" || !ok && listed.Raw != "[]" {
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
	for _, e := range gjson.GetBytes(d.text, "rasa_nlu_data.common_examples").Array() {
		c.add(field{"text", e.Get("text").Str}, field{"label", e.Get("intent").Str})
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
