package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/racflow/racflow/engine/internal/source/rows"
)

// This file turns Jupyter notebooks (nbformat 4) into Markdown. Markdown cells stay. Code cells
// become fenced code, followed by the text of their outputs up to a limit per cell. It omits
// pictures, HTML, JSON and other data of outputs, and metadata except the language of the code. An
// error of a cell appears as its name and value, without the traceback.
//
// It runs nothing.

// pictures matches pictures written into Markdown as base64.
var pictures = regexp.MustCompile(`(!\[[^\]\n]*\])\(data:[^)\n]*\)`)

// escapes matches the colour codes of terminals.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// maxOutput is the most bytes of a cell's outputs.
const maxOutput = 2000

// notebook returns the text of a notebook. It fails if the input is no notebook.
func notebook(text string) (string, error) {
	var book struct {
		Cells    []cell `json:"cells"`
		Metadata struct {
			Language struct{ Name string }     `json:"language_info"`
			Kernel   struct{ Language string } `json:"kernelspec"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(rows.Finite([]byte(text)), &book); err != nil {
		return "", fmt.Errorf("its notebook cannot be read: %w; save it anew, or leave it out with exclude", err)
	}
	if book.Cells == nil {
		return "", errors.New("it is JSON, but no notebook of nbformat 4: it has no cells; save it anew, or leave it out with exclude")
	}
	language := book.Metadata.Language.Name
	if language == "" {
		language = book.Metadata.Kernel.Language
	}
	var out strings.Builder
	for _, c := range book.Cells {
		if block := strings.Trim(c.block(notebookWord(language)), "\n"); strings.TrimSpace(block) != "" {
			out.WriteString(block + "\n\n")
		}
	}
	if out.Len() == 0 {
		return "", nil
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// notebookWord returns a language if it may follow the mark of fenced code, otherwise "".
func notebookWord(language string) string {
	if len(language) > 30 || strings.ContainsFunc(language, func(r rune) bool { return r <= ' ' || r == '`' || r > '~' }) {
		return ""
	}
	return language
}

type cell struct {
	Kind    string   `json:"cell_type"`
	Source  lines    `json:"source"`
	Outputs []output `json:"outputs"`
}

type output struct {
	Kind  string           `json:"output_type"`
	Text  lines            `json:"text"`
	Data  map[string]lines `json:"data"`
	Name  string           `json:"ename"`
	Value string           `json:"evalue"`
}

// lines is a text in JSON: a string, or a list of strings to join. Any other value is an empty
// text.
type lines string

// UnmarshalJSON implements json.Unmarshaler.
func (l *lines) UnmarshalJSON(raw []byte) error {
	var one string
	var many []string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		*l = lines(one)
	case json.Unmarshal(raw, &many) == nil:
		*l = lines(strings.Join(many, ""))
	}
	return nil
}

func (c cell) block(language string) string {
	switch c.Kind {
	case "markdown", "raw", "html":
		return pictures.ReplaceAllString(string(c.Source), "$1")
	case "code":
		code := strings.Trim(string(c.Source), "\n")
		if strings.TrimSpace(code) == "" {
			return ""
		}
		block := fence(code, language)
		if said := c.output(); said != "" {
			block += "\n\nOutput:\n\n" + fence(said, "")
		}
		return block
	}
	return ""
}

// output returns the text of a cell's outputs.
func (c cell) output() string {
	var out strings.Builder
	for _, o := range c.Outputs {
		text := string(o.Text)
		if text == "" {
			text = string(o.Data["text/plain"])
		}
		switch {
		case o.Kind == "error":
			text = o.Name + ": " + o.Value
		case o.Data["text/markdown"] != "":
			text = string(o.Data["text/markdown"])
		case o.Data["text/latex"] != "" && text == "":
			text = string(o.Data["text/latex"])
		}
		text = strings.TrimRight(escapes.ReplaceAllString(text, ""), "\n")
		if out.Len() > 0 && text != "" {
			out.WriteByte('\n')
		}
		if out.Len()+len(text) > maxOutput {
			out.WriteString(strings.ToValidUTF8(text[:max(0, maxOutput-out.Len())], "") + "\n[The output goes on.]")
			break
		}
		out.WriteString(text)
	}
	return out.String()
}
