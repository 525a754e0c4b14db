package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
)

// The limits of OpenAI's strict schemas: values of an enum, and their
// characters in all where there are many.
const (
	maxValues     = 1000
	manyValues    = 250
	maxCharacters = 15000
)

// structure sets how the answer is held to the question's labels.
func (v *voter) structure(q *question) error {
	if q.prompt.Passages != nil { // a text of the model's own
		return nil
	}
	allowed := q.prompt.Labels
	if q.prompt.None != "" && len(allowed) > 0 {
		allowed = append(allowed[:len(allowed):len(allowed)], q.prompt.None)
	}
	switch mode := v.config.Structured; {
	case mode == "choice" && q.prompt.Fields != nil:
		return sdk.Invalid(errors.New(`the prompt wants JSON, which structured = "choice" rules out; write "auto"`))
	case mode == "choice":
		q.request.Choice = allowed
	case mode == "json_schema", mode == "auto" && q.prompt.Fields != nil:
		if q.prompt.Fields == nil {
			q.prompt.Fields = []string{sdk.LabelProperty}
		}
		if !listable(allowed) {
			v.WarnOnce("schema", "the labels are too many for a JSON schema: the model may answer others, which accept rules have to refuse", "labels", len(allowed))
			allowed = nil
		}
		q.request.Schema, q.request.Grammar = schema(q.prompt.Fields, allowed), grammar(q.prompt.Fields, allowed)
	}
	return nil
}

func listable(values []string) bool {
	characters := 0
	for _, value := range values {
		characters += utf8.RuneCountInString(value)
	}
	return len(values) <= maxValues && (len(values) <= manyValues || characters <= maxCharacters)
}

// schema is a strict schema of an object of strings, whose label is one of those
// allowed, or whose labels are a list of such; nil: any. Servers write the properties in its order, so that a
// reasoning comes before the label that it leads to.
func schema(fields, allowed []string) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	for i, field := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		value := `{"type":"string"}`
		if (field == sdk.LabelProperty || field == sdk.LabelsProperty) && len(allowed) > 0 {
			value = `{"type":"string","enum":` + fewshot.JSON(allowed) + `}`
		}
		if field == sdk.LabelsProperty {
			value = `{"type":"array","items":` + value + `}`
		}
		b.WriteString(fewshot.JSON(field) + ":" + value)
	}
	b.WriteString(`},"required":` + fewshot.JSON(fields) + `,"additionalProperties":false}`)
	return b.Bytes()
}

// grammar is the same in GBNF, which llama.cpp obeys where it ignores schemas:
// on its completions endpoint.
func grammar(fields, allowed []string) string {
	var b strings.Builder
	b.WriteString("root ::= ")
	for i, field := range fields {
		before := ", "
		if i == 0 {
			before = "{"
		}
		b.WriteString(literal(before+fewshot.JSON(field)+": ") + " ")
		value := "string"
		if (field == sdk.LabelProperty || field == sdk.LabelsProperty) && len(allowed) > 0 {
			value = "label"
		}
		if field == sdk.LabelsProperty {
			value = fmt.Sprintf(`"[" (%s (", " %s)*)? "]"`, value, value)
		}
		b.WriteString(value + " ")
	}
	b.WriteString(literal("}") + "\n")
	if len(allowed) > 0 {
		var labels []string
		for _, label := range allowed {
			labels = append(labels, literal(fewshot.JSON(label)))
		}
		b.WriteString("label ::= " + strings.Join(labels, " | ") + "\n")
	}
	b.WriteString(`string ::= "\"" ([^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt])* "\""` + "\n")
	return b.String()
}

// literal quotes a text for GBNF. JSON has no line breaks in it.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
