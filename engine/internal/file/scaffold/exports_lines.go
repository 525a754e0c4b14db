package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/racflow/racflow/engine/internal/knowledge/rows"
)

// entity is a part of a phrase that Rasa marks, such as [Berlin](city) or [Berlin]{"entity": "city"}.
var entity = regexp.MustCompile(`\[([^\]]+)\](\([^)]*\)|\{[^}]*\}|\[\{[^\]]*\}\])`)

var (
	rasaYAML = regexp.MustCompile(`(?m)^(nlu:|- intent:)`)
	folded   = regexp.MustCompile(`(?m)^(\s*examples:\s*)>`) // meant as |, since each line has a phrase
)

// notIntents names the other kinds of Rasa's training data, in its YAML and its JSON.
var notIntents = map[string]string{
	"synonym": "synonym%", "lookup": "lookup table%", "regex": "regular expression%",
	"entity_synonyms": "synonym%", "lookup_tables": "lookup table%", "regex_features": "regular expression%",
}

// rasa reads the JSON of Rasa 1 and the YAML of later versions.
func rasa(d *data, c *converted) bool {
	old := gjson.GetBytes(d.text, "rasa_nlu_data")
	for _, e := range old.Get("common_examples").Array() {
		c.add(field{"text", e.Get("text").Str}, field{"label", e.Get("intent").Str})
	}
	for name, what := range notIntents {
		c.leave(len(old.Get(name).Array()), what)
	}
	if old.Exists() || !rasaYAML.Match(d.text) || !bytes.Contains(d.text, []byte("intent:")) {
		return c.n > 0
	}
	for in := yaml.NewDecoder(bytes.NewReader(folded.ReplaceAll(d.text, []byte("${1}|")))); ; {
		var file yaml.Node
		if err := in.Decode(&file); errors.Is(err, io.EOF) {
			return c.n > 0
		} else if err != nil {
			c.err = fmt.Errorf("it is not YAML (%w): mend it", err)
			return false
		}
		for _, root := range file.Content {
			if root.Kind == yaml.SequenceNode {
				c.rasaItems(root)
			}
			for name, value := range members(root) {
				switch name {
				case "version":
				case "nlu":
					c.rasaItems(value)
				default:
					c.leave(1, "section "+name)
				}
			}
		}
	}
}

// members yields the members of a mapping.
func members(n *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content) && yield(n.Content[i].Value, n.Content[i+1]); i += 2 {
		}
	}
}

// rasaItems reads intents with their phrases, and counts other items.
func (c *converted) rasaItems(list *yaml.Node) {
	for _, item := range list.Content {
		intent, before, what := "", c.n, "item% of another kind"
		var examples *yaml.Node
		for name, value := range members(item) {
			switch {
			case name == "intent":
				intent = strings.TrimSpace(value.Value)
			case name == "examples":
				examples = value
			case notIntents[name] != "":
				what = notIntents[name]
			}
		}
		switch {
		case intent == "":
			c.leave(1, what)
			continue
		case examples != nil && examples.Kind == yaml.SequenceNode:
			for _, e := range examples.Content {
				text := e.Value
				for name, value := range members(e) {
					if name == "text" {
						text = value.Value
					} else {
						c.leave(1, name+" of examples")
					}
				}
				c.phrase(text, intent)
			}
		case examples != nil:
			for line := range strings.Lines(examples.Value) {
				if text, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
					c.phrase(text, intent)
				} else if text != "" {
					c.leave(1, "line% of examples without a - before them")
				}
			}
		}
		if c.n == before {
			c.leave(1, "intent% without a phrase")
		}
	}
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

// fastTextLabel is a label of fastText. It stands anywhere in a line, and ends at white space.
var fastTextLabel = regexp.MustCompile(`(^|[\s\v\x00\x{85}\p{Z}])` + fastTextMark + `([^\s\v\x00\x{85}\p{Z}]*)`)

// fastText reads lines with labels. Where each label has a comma in it, its text begins there.
func fastText(d *data, c *converted) bool {
	if !bytes.Contains(d.text[:min(len(d.text), rows.BufferSize)], []byte(fastTextMark)) {
		return false
	}
	type row struct {
		labels []string
		text   string
	}
	var all []row
	others, commas, count := 0, map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(d.text)) {
		var r row
		line = strings.Trim(line, "\x00\ufeff \t\r\n\v\f")
		for _, m := range fastTextLabel.FindAllStringSubmatch(line, -1) {
			for label := range strings.SplitSeq(m[2], ","+fastTextMark) {
				label = strings.TrimRight(label, ",")
				r.labels = append(r.labels, label)
				if count[label]++; strings.Contains(label, ",") {
					commas[label]++
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
	within := len(all) > 0 && !slices.ContainsFunc(all, func(r row) bool { return len(r.labels) > 1 || commas[r.labels[0]] == 0 })
	for _, r := range all {
		label, text, _ := strings.Cut(r.labels[0], ",")
		if within {
			r.labels[0], r.text = label, strings.TrimSpace(text+" "+r.text)
		} else if text != "" && count[label] > 0 {
			c.unsure = fmt.Sprintf("%q is a label with a comma, or the label %q with a text: --column label=label says the first, a blank in place of the comma the second", r.labels[0], label)
		}
		c.add(field{"text", r.text}, field{"label", labels(r.labels)})
	}
	c.leave(others, "line% without a label")
	return others <= c.n
}
