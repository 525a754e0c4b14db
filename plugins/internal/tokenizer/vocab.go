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

	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
	"github.com/racflow/racflow/plugins/internal/tokenizer/pretokenizer"
	"github.com/racflow/racflow/plugins/internal/tokenizer/wordpiece"
)

const (
	vocabFile = "vocab.txt"
	maxVocab  = 16 << 20
)

// openVocab reads the vocab.txt of a BERT model, which is an uncased one if its
// tokenizer_config.json does not say otherwise.
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

// noTokenizer is the error of a folder without a tokenizer that can be read.
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

// newVocab is BERT's tokenizer with a vocabulary of one token a line.
func newVocab(text []byte, s settings) (*Tokenizer, error) {
	m, err := wordpiece.ReadVocab(bytes.NewReader(text))
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
	if t.words, err = pretokenizer.New([]byte(`{"type": "BertPreTokenizer"}`)); err != nil {
		return nil, err
	}
	if err := t.readAdded(added); err != nil {
		return nil, err
	}
	t.finish()
	t.template = bertTemplate(ids["[CLS]"], ids["[SEP]"])
	sum := sha256.New()
	sum.Write(text)
	if !s.lower() || !s.strip() || !s.chinese() {
		fmt.Fprintf(sum, "\x00%s", bertNormalizer)
	}
	t.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return t, nil
}
