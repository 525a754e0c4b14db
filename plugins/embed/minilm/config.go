package minilm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// config describes a model by the files of its folder. It is part of the fingerprint:
// vectors depend on every field.
type config struct {
	Hidden       int
	Layers       int
	Heads        int
	Intermediate int
	Positions    int // rows of the position embeddings
	Epsilon      float64
	MaxTokens    int  // tokens in a sequence, [CLS] and [SEP] included
	MeanPooling  bool // false: the vector of [CLS]
	Normalize    bool // to length 1
}

// miniLM is all-MiniLM-L6-v2, for a folder with weights and vocabulary only.
func miniLM() config {
	return config{
		Hidden: 384, Layers: 6, Heads: 12, Intermediate: 1536, Positions: 512,
		Epsilon: 1e-12, MaxTokens: 256, MeanPooling: true, Normalize: true,
	}
}

// readConfig reads the configuration files in a model folder. A model that the encoder
// cannot compute is an error with the reason.
func readConfig(dir string) (config, error) {
	c := miniLM()
	for _, step := range []func(string) error{
		c.readArchitecture, c.readTokenizer, c.readLimit, c.readPooling, c.readModules,
	} {
		if err := step(dir); err != nil {
			return config{}, err
		}
	}
	c.MaxTokens = min(c.MaxTokens, c.Positions)
	return c, nil
}

// readJSON decodes a file of the folder into v. Where the file or a field is missing, v
// stays as it is.
func readJSON(dir, name string, v any) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the model's configuration: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *config) readArchitecture(dir string) error {
	f := struct {
		ModelType    string  `json:"model_type"`
		Activation   string  `json:"hidden_act"`
		PositionType string  `json:"position_embedding_type"`
		Hidden       int     `json:"hidden_size"`
		Layers       int     `json:"num_hidden_layers"`
		Heads        int     `json:"num_attention_heads"`
		Intermediate int     `json:"intermediate_size"`
		Positions    int     `json:"max_position_embeddings"`
		Epsilon      float64 `json:"layer_norm_eps"`
	}{"bert", "gelu", "absolute", c.Hidden, c.Layers, c.Heads, c.Intermediate, c.Positions, c.Epsilon}
	const name = "config.json"
	if err := readJSON(dir, name, &f); err != nil {
		return err
	}
	c.Hidden, c.Layers, c.Heads = f.Hidden, f.Layers, f.Heads
	c.Intermediate, c.Positions, c.Epsilon = f.Intermediate, f.Positions, f.Epsilon
	switch {
	case f.ModelType != "bert":
		return unsupported(dir, name, "model_type is %q, only \"bert\" is", f.ModelType)
	case f.Activation != "gelu":
		return unsupported(dir, name, "hidden_act is %q, only \"gelu\" is", f.Activation)
	case f.PositionType != "absolute":
		return unsupported(dir, name, "position_embedding_type is %q, only \"absolute\" is", f.PositionType)
	case min(c.Hidden, c.Layers, c.Heads, c.Intermediate) < 1 || c.Positions < 2 || c.Epsilon <= 0:
		return unsupported(dir, name, "a size is zero or negative")
	case c.Hidden%c.Heads != 0:
		return unsupported(dir, name, "hidden_size %d does not divide into %d heads", c.Hidden, c.Heads)
	}
	return nil
}

// readLimit reads the limit that overrides the tokenizer's own.
func (c *config) readLimit(dir string) error {
	f := struct {
		MaxTokens int `json:"max_seq_length"`
	}{c.MaxTokens}
	const name = "sentence_bert_config.json"
	if err := readJSON(dir, name, &f); err != nil {
		return err
	}
	if c.MaxTokens = f.MaxTokens; c.MaxTokens < 2 {
		return unsupported(dir, name, "%d tokens have no room for [CLS] and [SEP]", c.MaxTokens)
	}
	return nil
}

func (c *config) readTokenizer(dir string) error {
	f := struct {
		Lower   bool    `json:"do_lower_case"`
		Chinese bool    `json:"tokenize_chinese_chars"`
		Strip   *bool   `json:"strip_accents"`
		Limit   float64 `json:"model_max_length"` // 1e30 where there is none
	}{Lower: true, Chinese: true, Limit: float64(c.MaxTokens)}
	const name = "tokenizer_config.json"
	if err := readJSON(dir, name, &f); err != nil {
		return err
	}
	if !f.Lower || !f.Chinese || f.Strip != nil && !*f.Strip {
		return unsupported(dir, name, "the tokenizer is not the uncased one, which alone is")
	}
	c.MaxTokens = int(min(f.Limit, math.MaxInt32))
	return nil
}

func (c *config) readPooling(dir string) error {
	const name = "1_Pooling/config.json"
	f := map[string]any{"pooling_mode": "mean"}
	if err := readJSON(dir, name, &f); err != nil {
		return err
	}
	// Older files have a switch for each mode instead of pooling_mode.
	var modes []string
	for key, value := range f {
		if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && value == true {
			modes = append(modes, strings.TrimSuffix(mode, "_tokens"))
		}
	}
	if len(modes) == 0 {
		modes = append(modes, fmt.Sprint(f["pooling_mode"]))
	}
	switch strings.Join(modes, "+") {
	case "mean":
		c.MeanPooling = true
	case "cls", "cls_token":
		c.MeanPooling = false
	default:
		return unsupported(dir, name, "pooling by %s, only mean or cls is", strings.Join(modes, " and "))
	}
	return nil
}

func (c *config) readModules(dir string) error {
	const name = "modules.json"
	var modules []struct {
		Type string `json:"type"`
	}
	if err := readJSON(dir, name, &modules); err != nil {
		return err
	}
	if modules != nil {
		c.Normalize = false
	}
	for _, m := range modules {
		switch m.Type[strings.LastIndexByte(m.Type, '.')+1:] {
		case "Transformer", "Pooling":
		case "Normalize":
			c.Normalize = true
		default:
			return unsupported(dir, name, "module %q, only Transformer, Pooling and Normalize are", m.Type)
		}
	}
	return nil
}

// unsupported is the error of a model that cannot be used.
func unsupported(dir, name, reason string, args ...any) error {
	return fmt.Errorf("%s: model is not supported: %s", filepath.Join(dir, filepath.FromSlash(name)), fmt.Sprintf(reason, args...))
}
