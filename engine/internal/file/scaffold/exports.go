package scaffold

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/source/document"
	"github.com/racflow/racflow/engine/internal/source/rows"
)

// export is a form, other than a table, in which another program writes texts and labels. The rows are written
// beside the pipeline file as JSONL.
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

// asDocuments names form of files and folders that hold documents, whatever they look like.
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
	folder  string // empty: the data is a file
	named   bool   // a person has named the form
	text    []byte
	records []gjson.Result // of JSON: lines, elements, or elements of the only array in an object
	broken  int            // lines that are not JSON
}

// converted holds the rows of an export.
type converted struct {
	rows   bytes.Buffer // JSONL
	n      int
	left   map[string]int    // count of each kind of omitted content; % in a kind becomes the s of the plural
	labels map[string]string // by text, as JSON
	others int               // rows whose text an earlier row has with another label
	unsure string            // as in Rows
	err    error             // not nil: the export has the form, but cannot be read
}

// field is a column of a row: a text, a number, or a list of labels.
type field struct {
	name  string
	value any
}

// add adds a row. It renames the second of two fields with the same name.
func (c *converted) add(row ...field) {
	c.rows.WriteByte('{')
	named := map[string]string{} // values as JSON
	for i, f := range row {
		for named[f.name] != "" {
			f.name += "_"
		}
		if i > 0 {
			c.rows.WriteByte(',')
		}
		name, _ := json.Marshal(f.name) // texts, numbers and lists of these always encode
		value, _ := json.Marshal(f.value)
		named[f.name] = string(value)
		c.rows.Write(name)
		c.rows.WriteByte(':')
		c.rows.Write(value)
	}
	c.rows.WriteString("}\n")
	c.n++
	if before, again := c.labels[named["text"]]; again && before != named["label"] {
		c.others++
	}
	c.labels[named["text"]] = named["label"]
}

// leave counts omitted content, such as "record% of another form".
func (c *converted) leave(n int, what string) {
	if n > 0 {
		c.left[what] += n
	}
}

// notes reports omitted content, and contradictions.
func (c *converted) notes() (all []string) {
	var said []string
	for _, what := range slices.Sorted(maps.Keys(c.left)) {
		n := c.left[what]
		said = append(said, fmt.Sprintf("%d %s", n, strings.ReplaceAll(what, "%", map[bool]string{false: "s"}[n == 1])))
	}
	if said != nil {
		all = append(all, "left out: "+strings.Join(said, ", "))
	}
	if c.others > 0 {
		all = append(all, have(c.others, "row")+" the text of an earlier row, and another label")
	}
	return all
}

// exportIn detects the form of a file or folder, or uses the named one. nil: no form fits.
func exportIn(path string, folder bool, name string) (*export, *converted, error) {
	d, ext := &data{folder: path, named: name != ""}, strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))
	if !folder {
		if f := source.FormatOf(path); name == "" && f != source.JSON && f != source.JSONL && !slices.Contains([]string{"", ".txt", ".md", ".markdown", ".yml", ".yaml", ".ft", ".train", ".valid", ".test"}, ext) && !marked(path) {
			return nil, nil, nil
		}
		text, err := readText(path)
		if err != nil {
			return nil, nil, nil //nolint:nilerr // its reader reports why
		}
		d = &data{text: text}
		d.records, d.broken = recordsOf(text)
	}
	for _, e := range exports {
		c := &converted{left: map[string]int{}, labels: map[string]string{}}
		fits := e.folder == folder && (name == "" || name == e.name) && e.read(d, c)
		if c.leave(d.broken, "line% that cannot be read as JSON"); fits && c.n > 0 {
			return &e, c, nil
		}
		if fits && e.name == "prodigy" && len(c.left) > 0 {
			c.err = fmt.Errorf("no text was accepted (%s)", c.notes()[0])
		}
		if c.err != nil {
			return nil, nil, fmt.Errorf("%s is %s, but %w; --format says how it is to be read, such as --format documents", path, e.what, c.err)
		}
	}
	return nil, nil, nil
}

// maxSearched limits how many files are searched for exports.
const maxSearched = 500

// exportWithin refuses a folder or glob with files of Rasa or fastText, which would lose their labels as
// documents.
func exportWithin(place string) error {
	var all, found []string
	if document.IsGlob(place) {
		all, _ = source.Files(place) // its reader reports errors
	} else {
		for _, id := range filesIn(place, maxSearched) {
			all = append(all, filepath.Join(place, filepath.FromSlash(id)))
		}
	}
	what := ""
	for _, path := range all[:min(len(all), maxSearched)] {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > document.MaxBytes || source.Is(path) && source.FormatOf(path) != source.JSON {
			continue
		}
		switch e, _, err := exportIn(path, false, ""); {
		case err != nil:
			return err
		case e != nil && (e.name == "rasa" || e.name == "fasttext"):
			what, found = e.what, append(found, path)
		}
	}
	if found == nil {
		return nil
	}
	return fmt.Errorf("%s holds %s, in %s: name such a file; --format documents reads all files as documents", place, what, list(found))
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

// recordsOf returns the values in a JSON text: the values of its lines, or the elements of its only array. It also
// returns how many lines between values are broken.
func recordsOf(text []byte) (all []gjson.Result, broken int) {
	text = rows.Finite(text)
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		err := d.Decode(&value)
		if err == nil {
			all = append(all, gjson.ParseBytes(value))
			continue
		}
		_, text, _ = bytes.Cut(bytes.TrimSpace(text[d.InputOffset():]), []byte("\n"))
		next, _, _ := bytes.Cut(text, []byte("\n"))
		if errors.Is(err, io.EOF) || len(all) == 0 && !json.Valid(next) {
			break
		}
		broken++
		d = json.NewDecoder(bytes.NewReader(text))
	}
	if len(all) != 1 || broken > 0 {
		return all, broken
	}
	if arrays := arraysIn(all[0], "messages"); len(arrays) == 1 {
		return all[0].Get(gjson.Escape(arrays[0])).Array(), 0
	}
	if all[0].IsArray() {
		return all[0].Array(), 0
	}
	return all, 0
}

// arraysIn names the members of an object that are arrays of objects, except the member without.
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

// first returns the first existing member with one of several names.
func first(o gjson.Result, names ...string) (found gjson.Result) {
	for _, name := range names {
		if found = o.Get(name); found.Exists() {
			break
		}
	}
	return found
}

// texts returns the elements of an array of texts. ok reports whether all elements are texts, and there is at
// least one.
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

// scalars returns the members of an object, except without. It only counts objects and arrays.
func (c *converted) scalars(o gjson.Result, without ...string) (row []field) {
	o.ForEach(func(name, value gjson.Result) bool {
		switch {
		case strings.HasPrefix(name.Str, "_"), slices.Contains(without, name.Str), value.Raw == "[]", value.Raw == "{}":
		case value.Type == gjson.JSON:
			c.leave(1, "list% or object% in "+name.Str)
		default:
			row = append(row, field{name.Str, json.RawMessage(value.Raw)})
		}
		return true
	})
	return row
}

// labels returns a single label, or a list of several labels.
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
				c.leave(1, "record% of another form")
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
	row := c.scalars(task)
	if id := o.Get("id"); id.Exists() && !task.Get("id").Exists() {
		row = append([]field{{"id", json.RawMessage(id.Raw)}}, row...)
	}
	c.leave(len(o.Get("predictions").Array()), "prediction%")
	var counts []field // the choices of the first annotation that has some
	for _, a := range annotations.Array() {
		var chosen []field
		for _, r := range a.Get("result").Array() {
			if all, ok := texts(r.Get("value.choices")); ok {
				chosen = append(chosen, field{r.Get("from_name").Str, labels(all)})
			} else {
				c.leave(1, "annotation result% without a choice")
			}
		}
		switch {
		case a.Get("was_cancelled").Bool():
			c.leave(1, "cancelled annotation%")
		case len(chosen) == 0:
			c.leave(1, "annotation% without a choice")
		case counts == nil:
			counts = chosen
		case reflect.DeepEqual(counts, chosen):
			c.leave(1, "further annotation% like the first of the text")
		default:
			c.leave(1, "further annotation% unlike the first of the text")
		}
	}
	c.add(append(row, counts...)...)
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
		if said.IsArray() {
			c.leave(len(said.Array())-len(said.Get("#.text").Array()), "part% of messages without text")
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
	c.leave(questions-1, "question% before the last one of a chat")
	c.add(append([]field{{"text", question}, {"answer", strings.TrimSpace(answer)}}, c.scalars(o, "text", "answer", "messages", "conversations", "contents")...)...)
	return true
}

func prodigy(o gjson.Result, c *converted) bool {
	decision, chosen := o.Get("answer").Str, o.Get("accept")
	if o.Get("text").Type != gjson.String || !slices.Contains([]string{"accept", "reject", "ignore"}, decision) || !chosen.Exists() && !first(o, "label", "_task_hash", "options").Exists() {
		return false
	}
	if decision != "accept" {
		c.leave(1, "text% with the answer "+decision)
		return true
	}
	row := c.scalars(o, "answer", "accept", "options")
	if all, ok := texts(chosen); ok {
		row = append(row, field{"label", labels(all)})
	}
	c.add(row...)
	return true
}

func categories(o gjson.Result, c *converted) bool {
	scores := o.Get("cats")
	if !scores.IsObject() || o.Get("text").Type != gjson.String {
		return false
	}
	var all []string
	scores.ForEach(func(name, score gjson.Result) bool {
		if score.Type == gjson.True || score.Type == gjson.Number && score.Num >= 0.5 {
			all = append(all, name.Str)
		}
		return true
	})
	c.add(append(c.scalars(o, "label", "cats"), field{"label", labels(all)})...)
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
	if len(phrases) == 0 {
		c.leave(1, "intent% without a phrase")
	}
	for _, phrase := range phrases {
		c.add(field{"text", phrase}, field{"label", label})
	}
	return true
}
