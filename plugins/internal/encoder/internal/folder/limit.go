package folder

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// readTokenizer reads the limit of the tokenizer, and whether models get segments from it.
func (m *Model) readTokenizer(dir string) error {
	f := struct {
		Limit  float64  `json:"model_max_length"` // 1e30 where there is none
		Inputs []string `json:"model_input_names"`
	}{Limit: float64(m.MaxTokens)}
	if _, err := readJSON(dir, "tokenizer_config.json", &f); err != nil {
		return err
	}
	m.MaxTokens = int(min(f.Limit, math.MaxInt32))
	m.oneSegment = f.Inputs != nil && !slices.Contains(f.Inputs, "token_type_ids")
	return nil
}

// limitFiles are the names of the file that configures the transformer, as sentence-transformers
// look for it.
var limitFiles = []string{
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json", "sentence_xlm-roberta_config.json",
}

// unknownLimits are settings of that file that change which tokens a model reads.
var unknownLimits = []string{
	"processing_kwargs", "processor_kwargs", "tokenizer_args", "config_kwargs", "config_args",
	"query_length", "document_length", "query_expansion",
}

// readLimit reads the limit that overrides the tokenizer's own.
func (m *Model) readLimit(dir string) error {
	var file map[string]json.RawMessage
	name := limitFiles[0]
	for _, other := range limitFiles {
		found, err := readJSON(dir, other, &file)
		if err != nil {
			return err
		}
		if found && len(file) > 0 {
			name = other
			break
		}
	}
	for _, key := range unknownLimits {
		var object map[string]any
		if raw := file[key]; json.Unmarshal(raw, &object) == nil {
			maps.DeleteFunc(object, func(name string, _ any) bool { return name == "trust_remote_code" })
		}
		if raw := file[key]; len(object) > 0 || object == nil && raw != nil && !bytes.Equal(raw, []byte("null")) {
			return unsupported(dir, name, "%s is %s", key, raw)
		}
	}
	f := struct {
		MaxTokens int  `json:"max_seq_length"`
		LowerCase bool `json:"do_lower_case"`
	}{MaxTokens: m.MaxTokens}
	if _, err := readJSON(dir, name, &f); err != nil {
		return err
	}
	m.LowerCase = f.LowerCase
	if m.MaxTokens = f.MaxTokens; m.MaxTokens < 2 {
		return unsupported(dir, name, "%d tokens have no room for [CLS] and [SEP]", m.MaxTokens)
	}
	return nil
}

const promptsFile = "config_sentence_transformers.json"

// readPrompts reads what goes before queries and passages, and how vectors are compared.
func (m *Model) readPrompts(dir string) error {
	const name = promptsFile
	var f struct {
		Prompts    map[string]*string `json:"prompts"`
		Default    *string            `json:"default_prompt_name"`
		Similarity *string            `json:"similarity_fn_name"`
		Scores     string             `json:"activation_fn"` // of a cross-encoder
	}
	if _, err := readJSON(dir, name, &f); err != nil {
		return err
	}
	if f.Similarity != nil {
		switch *f.Similarity {
		case "cosine", "dot", "dot_product":
		default:
			return unsupported(dir, name, "similarity_fn_name is %q, only \"cosine\" and \"dot\" are", *f.Similarity)
		}
	}
	m.scores = f.Scores
	if f.Default != nil && f.Prompts[*f.Default] != nil {
		m.defaultPrompt = *f.Prompts[*f.Default]
	}
	prompt := func(names ...string) string {
		for _, name := range names {
			if p := f.Prompts[name]; p != nil {
				return *p
			}
		}
		return m.defaultPrompt
	}
	m.QueryPrompt, m.PassagePrompt = prompt("query"), prompt("document", "passage", "corpus")
	return nil
}
