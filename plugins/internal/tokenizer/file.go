package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
)

// file is the content of tokenizer.json. It ignores padding and the greatest length, which the caller decides.
type file struct {
	Version       string          `json:"version"`
	Truncation    *truncation     `json:"truncation"`
	Added         json.RawMessage `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

const (
	jsonFile = "tokenizer.json"

	// maxFile is the greatest size of a tokenizer.json: the largest vocabularies take a quarter of it.
	maxFile = 128 << 20

	// maxAddedList and maxPart bound the added tokens and each other part except the model. These take some kB, and
	// with a table of characters a third of a MB.
	maxAddedList = 32 << 20
	maxPart      = 4 << 20
)

// Open reads the tokenizer in a model's folder: tokenizer.json, or else vocab.txt.
func Open(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, jsonFile)
	text, err := readFile(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return openVocab(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the tokenizer: %w", err)
	}
	t, err := New(text, path)
	if err != nil {
		return nil, err
	}
	s, err := readSettings(dir)
	if err != nil {
		return nil, err
	}
	if err := s.agree(t); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, settingsFile), err)
	}
	return t, nil
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // reading a pipe would block; a device has no end
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s: more than %d MiB are no tokenizer", path, limit>>20)
	}
	return os.ReadFile(path)
}

// New reads the text of a tokenizer.json. name is the file's name, for errors.
func New(text []byte, name string) (*Tokenizer, error) {
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

var errLeft = errors.New("truncation on the left is not supported")

type truncation struct {
	Direction string `json:"direction"`
}

func parse(text []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != "" && f.Version != "1.0":
		return nil, fmt.Errorf("version %.20q is not supported, only 1.0 is", f.Version)
	case f.Truncation != nil && f.Truncation.Direction == "Left":
		return nil, errLeft
	}
	for _, part := range []struct {
		name string
		text json.RawMessage
		max  int
	}{{"added_tokens", f.Added, maxAddedList}, {"normalizer", f.Normalizer, maxPart}, {"pre_tokenizer", f.PreTokenizer, maxPart}, {"post_processor", f.PostProcessor, maxPart}} {
		if len(part.text) > part.max {
			return nil, fmt.Errorf("%s: %d bytes: %d are possible", part.name, len(part.text), part.max)
		}
	}
	t := &Tokenizer{}
	var err error
	if t.normalizer, err = normalizer.New(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if t.words, err = normalizer.NewPreTokenizer(f.PreTokenizer, !t.normalizer.None()); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if typeOf(f.Normalizer) == "BertNormalizer" {
		t.bert, err = normalizer.ReadBERT(f.Normalizer)
	}
	if err == nil && typeOf(f.PreTokenizer) == "ByteLevel" {
		var p struct {
			Prefix bool `json:"add_prefix_space"`
		}
		err, t.prefix = json.Unmarshal(f.PreTokenizer, &p), &p.Prefix
	}
	if err != nil {
		return nil, err
	}
	if t.model, err = newModel(f.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	tokens, err := readAddedList(f.Added)
	if err == nil {
		err = t.readAdded(tokens)
	}
	if err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if t.template, err = newTemplate(f.PostProcessor, t.size); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	t.fingerprint, err = f.fingerprint(tokens)
	return t, err
}

// typeOf returns the type of a part.
func typeOf(raw json.RawMessage) string {
	var f struct{ Type string }
	_ = json.Unmarshal(raw, &f)
	return f.Type
}

// newModel reads the "model" of a tokenizer.json.
func newModel(raw json.RawMessage) (model, error) {
	kind, err := modelType(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "WordPiece":
		return wrap(newWordPiece(raw))
	case "BPE":
		return wrap(newBPE(raw))
	case "Unigram":
		return wrap(newUnigram(raw))
	}
	return nil, fmt.Errorf("type %.40q is not supported, only WordPiece, BPE and Unigram are", kind)
}

// modelType returns the type of a model. New files have it first, so the vocabulary need not be read for it; old
// files do not have it.
func modelType(raw json.RawMessage) (string, error) {
	var f struct {
		Type          string
		Merges, Vocab json.RawMessage
		MaxWord       *int `json:"max_input_chars_per_word"`
	}
	first := json.NewDecoder(bytes.NewReader(raw))
	if _, err := first.Token(); err == nil {
		if key, _ := first.Token(); key == "type" && first.Decode(&f.Type) == nil {
			return f.Type, nil
		}
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return "", err
	}
	switch {
	case f.Type != "":
	case f.MaxWord != nil:
		f.Type = "WordPiece"
	case len(f.Merges) > 0:
		f.Type = "BPE"
	case bytes.HasPrefix(f.Vocab, []byte("[")):
		f.Type = "Unigram"
	}
	return f.Type, nil
}

// wrap converts a nil pointer into a nil model.
func wrap[M model](m M, err error) (model, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// fingerprint is the hash of everything that the ids depend on.
func (f *file) fingerprint(tokens []addedToken) (string, error) {
	sum := sha256.New()
	added, err := json.Marshal(tokens)
	if err != nil {
		return "", err
	}
	// Raise the number whenever the same file gives other ids than before.
	fmt.Fprintf(sum, "tokenizer 1\n%s\n", added)
	for _, part := range []json.RawMessage{f.Normalizer, f.PreTokenizer, f.PostProcessor, f.Model} {
		var b bytes.Buffer
		if len(part) > 0 {
			if err := json.Compact(&b, part); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(sum, "%d\n", b.Len())
		sum.Write(b.Bytes())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

const settingsFile = "tokenizer_config.json"

// settings are the settings of tokenizer_config.json about BERT's normalizer, RoBERTa's space before texts, and
// truncation. If tokenizer.json differs, transformers follows these settings.
type settings struct {
	Lower   *bool  `json:"do_lower_case"`
	Strip   *bool  `json:"strip_accents"`
	Chinese *bool  `json:"tokenize_chinese_chars"`
	Side    string `json:"truncation_side"`
	Class   string `json:"tokenizer_class"`
	Prefix  *bool  `json:"add_prefix_space"`
}

// readSettings reads the settings in a model's folder. The file may be missing.
func readSettings(dir string) (s settings, err error) {
	path := filepath.Join(dir, settingsFile)
	text, err := readFile(path, maxVocab)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Side == "left" {
		err = errLeft
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s settings) lower() bool   { return s.Lower == nil || *s.Lower }
func (s settings) chinese() bool { return s.Chinese == nil || *s.Chinese }

func (s settings) strip() bool {
	if s.Strip == nil {
		return s.lower()
	}
	return *s.Strip
}

// agree returns an error if two files in a folder contradict each other.
func (s settings) agree(t *Tokenizer) error {
	// Other classes follow tokenizer.json.
	if t.prefix != nil && s.Prefix != nil && *s.Prefix != *t.prefix && strings.HasPrefix(s.Class, "Roberta") {
		return fmt.Errorf("add_prefix_space is %t, but the pre-tokenizer of %s has it as %t: save the tokenizer again", *s.Prefix, jsonFile, *t.prefix)
	}
	n := t.bert
	if n == nil {
		return nil
	}
	for _, c := range []struct {
		name  string
		said  *bool
		inner bool
	}{{"do_lower_case", s.Lower, n.Lower}, {"strip_accents", s.Strip, n.Strip}, {"tokenize_chinese_chars", s.Chinese, n.Chinese}} {
		if c.said != nil && *c.said != c.inner {
			return fmt.Errorf("%s is %t, but the normalizer of %s has it as %t: save the tokenizer again", c.name, *c.said, jsonFile, c.inner)
		}
	}
	return nil
}

const (
	vocabFile = "vocab.txt"
	maxVocab  = 16 << 20
)

// openVocab reads the vocab.txt of a BERT model. The model is uncased unless tokenizer_config.json says otherwise.
func openVocab(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, vocabFile)
	text, err := readFile(path, maxVocab)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noTokenizer(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the tokenizer: %w", err)
	}
	s, err := readSettings(dir)
	if err != nil {
		return nil, err
	}
	t, err := newVocab(text, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// noTokenizer is the error for a folder without a readable tokenizer.
func noTokenizer(dir string, err error) error {
	for _, other := range []string{"sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "merges.txt"} {
		if path := filepath.Join(dir, other); exists(path) {
			return fmt.Errorf("%s: tokenizers of this form are not supported: save the tokenizer as tokenizer.json", path)
		}
	}
	return fmt.Errorf("open the tokenizer: %w: give a folder that holds tokenizer.json or vocab.txt", err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newVocab returns BERT's tokenizer for a vocabulary with one token per line.
func newVocab(text []byte, s settings) (*Tokenizer, error) {
	m, err := readVocab(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{model: m}
	var added []addedToken
	ids := map[string]int32{}
	for _, name := range []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"} {
		id, ok := m.ID(name)
		if !ok {
			return nil, fmt.Errorf("the token %s is missing: use the vocab.txt of a BERT model", name)
		}
		ids[name] = id
		added = append(added, addedToken{ID: id, Content: name, Special: true})
	}
	bertNormalizer, err := json.Marshal(map[string]any{"type": "BertNormalizer", "clean_text": true,
		"handle_chinese_chars": s.chinese(), "strip_accents": s.strip(), "lowercase": s.lower()})
	if err != nil {
		return nil, err
	}
	if t.normalizer, err = normalizer.New(bertNormalizer); err != nil {
		return nil, err
	}
	if t.words, err = normalizer.NewPreTokenizer([]byte(`{"type": "BertPreTokenizer"}`), true); err != nil {
		return nil, err
	}
	if err := t.readAdded(added); err != nil {
		return nil, err
	}
	t.template = bertTemplate(ids["[CLS]"], ids["[SEP]"])
	sum := sha256.New()
	sum.Write(text)
	if !s.lower() || !s.strip() || !s.chinese() {
		fmt.Fprintf(sum, "\x00%s", bertNormalizer)
	}
	t.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}
