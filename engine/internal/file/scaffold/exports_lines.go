package scaffold

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// entity is a part of a phrase that Rasa marks, such as [Berlin](city) or [Berlin]{"entity": "city"}.
var entity = regexp.MustCompile(`\[([^\]]+)\](\([^)]*\)|\{[^}]*\}|\[\{[^\]]*\}\])`)

var (
	rasaNLU     = regexp.MustCompile(`(?m)^nlu:`)
	rasaIntent  = regexp.MustCompile(`(?m)^\s*- *\{?intent:`)
	rasaSection = regexp.MustCompile(`(?m)^## *intent *:`)
	heading     = regexp.MustCompile(`^#+ *(?:(intent|synonym|lookup|regex) *:)? *(.*)`)
	bullet      = regexp.MustCompile(`^[*+]`)
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	folded      = regexp.MustCompile(`(?m)^(\s*examples:\s*)>`) // > means | here, since each line has a phrase
)

const notExamples = "line% of examples without - before them"

// notIntents names the other kinds of Rasa's training data, in its YAML and its JSON.
var notIntents = map[string]string{
	"synonym": "synonym%", "lookup": "lookup table%", "regex": "regular expression%",
	"entity_synonyms": "synonym%", "lookup_tables": "lookup table%", "regex_features": "regular expression%",
}

// rasa reads the JSON and Markdown of Rasa 1, and the YAML of later versions.
func rasa(d *data, c *converted) bool {
	markdown := rasaSection.Match(d.text) && !rasaNLU.Match(d.text) && !rasaIntent.Match(d.text) && !bytes.Contains(d.text, []byte("```"))
	if markdown {
		d.text = fromMarkdown(string(d.text))
	}
	old := gjson.GetBytes(d.text, "rasa_nlu_data")
	for _, e := range old.Get("common_examples").Array() {
		c.add(field{"text", e.Get("text").Str}, field{"label", e.Get("intent").Str})
	}
	for name, what := range notIntents {
		c.leave(len(old.Get(name).Array()), what)
	}
	if old.Exists() || !rasaIntent.Match(d.text) {
		return c.n > 0
	}
	text := folded.ReplaceAll(d.text, []byte("${1}|"))
	if !rasaNLU.Match(text) {
		text = append([]byte("nlu:\n"), text...)
	}
	var file struct {
		NLU     []map[string]yaml.Node `yaml:"nlu"`
		Version yaml.Node              `yaml:"version"`
		Others  map[string]yaml.Node   `yaml:",inline"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		if rasaNLU.Match(d.text) {
			c.err = fmt.Errorf("it cannot be read (%w): mend it", err)
		}
		return false
	}
	for name := range file.Others {
		c.leave(1, "section "+name)
	}
	for _, item := range file.NLU {
		intent, before := strings.TrimSpace(item["intent"].Value), c.n
		if intent == "" {
			what := "item% of another kind"
			for name := range item {
				what = cmp.Or(notIntents[name], what)
			}
			c.leave(1, what)
			continue
		}
		examples := item["examples"]
		for line := range strings.Lines(examples.Value) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
				c.phrase(text, intent)
			} else if text != "" {
				c.leave(1, notExamples)
			}
		}
		for _, e := range examples.Content {
			var members map[string]yaml.Node
			_ = e.Decode(&members) // otherwise it is a text
			c.leave(max(len(members)-1, 0), "value% beside the texts of examples")
			c.phrase(e.Value+members["text"].Value, intent)
		}
		if c.n == before {
			c.leave(1, "intent% without a phrase")
		}
	}
	return c.n > 0 && (!markdown || c.left[notExamples] <= c.n) // otherwise it is prose
}

// fromMarkdown converts sections of items, such as ## intent:greet, to the YAML of Rasa. It omits what precedes them.
func fromMarkdown(text string) []byte {
	all := []byte("nlu:\n")
	for line := range strings.Lines(comment.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		m, begun := heading.FindStringSubmatch(line), len(all) > len("nlu:\n")
		switch {
		case m != nil && (begun || m[1] != ""):
			all = fmt.Appendf(all, "- %s: %q\n  examples: |\n", cmp.Or(m[1], "other"), m[2])
		case line != "" && begun:
			all = fmt.Appendf(all, "    %s\n", bullet.ReplaceAllString(line, "-"))
		}
	}
	return all
}

// phrase adds a phrase of an intent, without the marks of entities.
func (c *converted) phrase(text, intent string) {
	c.leave(len(entity.FindAllString(text, -1)), "mark% of entities")
	if text = strings.TrimSpace(entity.ReplaceAllString(text, "$1")); text == "" {
		c.leave(1, "empty phrase%")
		return
	}
	c.add(field{"text", text}, field{"label", intent})
}

const fastTextMark = "__label__"

// fastTextLabel matches a label of fastText. The label may stand anywhere in a line, and ends at white space.
var fastTextLabel = regexp.MustCompile(`(^|[\s\v\x00\x{85}\p{Z}])` + fastTextMark + `([^\s\v\x00\x{85}\p{Z}]*)`)

// marked reports whether a table begins with a line of fastText, in which a blank ends the label.
func marked(path string) bool {
	in, err := os.Open(path)
	if err != nil {
		return false
	}
	defer in.Close()                                             //nolint:errcheck // it was only read
	head, _ := bufio.NewReader(in).Peek(len(fastTextMark) + 200) // a file may be shorter
	at := fastTextLabel.FindIndex(head)
	return at != nil && at[0] == 0 && !bytes.Contains(head[:at[1]], []byte(","))
}

// otherMark matches the prefix of labels if fastText was trained with another -label.
var otherMark = regexp.MustCompile(`(?:^|[\s\p{Z}])(__[A-Za-z]\w*?__)[^\s\p{Z}(]`)

// otherMarks returns the prefix of the labels in most lines, if it is not fastText's default.
func otherMarks(text []byte) string {
	n, all := map[string]int{}, 0
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			all++
		}
		if m := otherMark.FindSubmatch(line); m != nil {
			n[string(m[1])]++
		}
	}
	for mark, lines := range n {
		if 2*lines > all && all > 1 && mark != fastTextMark {
			return mark
		}
	}
	return ""
}

// fastText reads lines with labels. If each label contains a comma, its text begins there.
func fastText(d *data, c *converted) bool {
	head := d.text[:min(len(d.text), rows.BufferSize)]
	if mark := otherMarks(head); mark != "" {
		c.err = fmt.Errorf("its labels begin with %s, as by the option -label of fastText: write them with %s, such as by sed 's/%[1]s/%[2]s/g'", mark, fastTextMark)
		return false
	}
	if !bytes.Contains(head, []byte(fastTextMark)) {
		return false
	}
	type row struct {
		labels []string
		text   string
	}
	var all []row
	others, known := 0, map[string]bool{}
	for line := range strings.Lines(string(d.text)) {
		var r row
		line = strings.Trim(line, "\x00\ufeff \t\r\n\v\f")
		for _, m := range fastTextLabel.FindAllStringSubmatch(line, -1) {
			for label := range strings.SplitSeq(m[2], ","+fastTextMark) {
				label = strings.TrimRight(label, ",")
				if known[label] = true; !slices.Contains(r.labels, label) {
					r.labels = append(r.labels, label)
				}
			}
		}
		switch r.text = strings.TrimSpace(fastTextLabel.ReplaceAllString(line, "$1")); {
		case line == "":
		case r.labels == nil:
			others++
		default:
			r.text = strings.TrimSpace(strings.TrimLeft(r.text, ","))
			all = append(all, r)
		}
	}
	within := len(all) > 0 && !slices.ContainsFunc(all, func(r row) bool { return len(r.labels) > 1 || !strings.Contains(r.labels[0], ",") })
	without := 0
	for _, r := range all {
		label, text, _ := strings.Cut(r.labels[0], ",")
		if within {
			r.labels[0], r.text = label, strings.TrimSpace(text+" "+r.text)
		} else if text != "" && known[label] {
			c.unsure = fmt.Sprintf("%q is a label with a comma, or the label %q with a text: --column label=label says the first, a blank in place of the comma the second", r.labels[0], label)
		}
		if r.text == "" {
			without++
			continue
		}
		c.add(field{"text", r.text}, field{"label", labels(r.labels)})
	}
	c.leave(without, "line% without text")
	if c.leave(others, "line% without a label"); c.n == 0 && without > others {
		c.err = fmt.Errorf("it has %s without text", terminal.Plural(without, "line"))
	}
	return others <= c.n
}
