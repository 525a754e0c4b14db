package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

const settingsFile = "tokenizer_config.json"

// settings are what tokenizer_config.json says of BERT's normalizer, RoBERTa's space before texts,
// and truncation.
// transformers follows them where tokenizer.json says otherwise.
type settings struct {
	Lower   *bool  `json:"do_lower_case"`
	Strip   *bool  `json:"strip_accents"`
	Chinese *bool  `json:"tokenize_chinese_chars"`
	Side    string `json:"truncation_side"`
	Class   string `json:"tokenizer_class"`
	Prefix  *bool  `json:"add_prefix_space"`
}

// readSettings reads those in a model's folder, which need not be there.
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

// agree checks that a folder does not say two things about the same.
func (s settings) agree(t *Tokenizer) error {
	// Other classes take tokenizer.json's word.
	if prefix, ok := t.words.PrefixSpace(); ok && s.Prefix != nil && *s.Prefix != prefix && strings.HasPrefix(s.Class, "Roberta") {
		return fmt.Errorf("add_prefix_space is %t, but the pre-tokenizer of %s has it as %t: save the tokenizer again", *s.Prefix, jsonFile, prefix)
	}
	n := t.normalizer.BERT()
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
