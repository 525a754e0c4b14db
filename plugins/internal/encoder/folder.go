package encoder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file reads the configuration files in a model's folder, in the layout of sentence-transformers.
//
// Unsupported settings could change vectors silently. So the code reads every known setting, and refuses unsupported
// ones with the names of the setting and the file. The size of files is bounded, and numbers in them are not trusted:
// transformer.go compares the shapes of the weights with them before it allocates memory.
//
// This file reads neither weights nor tokenizer.

// folder holds the configuration of a model's folder.
type folder struct {
	Dir       string // that holds config.json, weights and tokenizer
	Shape     Config
	MaxTokens int
	LowerCase bool // lower-case texts before the tokenizer's own rules

	Pooled        bool // modules.json says that the model gives vectors
	Pooling       pooling
	IncludePrompt bool // tokens of a prompt count in the mean
	Dense         []Dense
	Normalize     bool // to length 1

	QueryPrompt, PassagePrompt string

	defaultPrompt string // prompt for texts without a prompt of their own
	oneSegment    bool   // the tokenizer gives no segments

	head   headJSON
	scores string // activation of scores in config_sentence_transformers.json
}

// pooling says how token vectors are combined into a text's vector.
type pooling string

// The kinds of pooling.
const (
	mean      pooling = "mean"
	cls       pooling = "cls"       // the first token
	lastToken pooling = "lasttoken" // the last token
)

// miniLM is all-MiniLM-L6-v2. A folder with only weights and vocabulary counts as this model if the options allow it.
func miniLM(dir string) folder {
	return folder{
		Dir: dir,
		Shape: Config{
			Family: bert, Hidden: 384, Layers: 6, Heads: 12, Intermediate: 1536, Positions: 512, Epsilon: 1e-12,
		},
		MaxTokens: 256, Pooling: mean, IncludePrompt: true, Normalize: true,
	}
}

// readFolder reads the configuration files in a model's folder. An unsupported model is an error with the reason. So
// is a folder without config.json, unless mayBeMiniLM is set.
func readFolder(dir string, mayBeMiniLM bool) (folder, error) {
	m := miniLM(dir)
	if !mayBeMiniLM {
		m.Shape = Config{Epsilon: 1e-12}
		m.MaxTokens = math.MaxInt32
	}
	if err := m.readModules(dir); err != nil {
		return folder{}, err
	}
	if _, err := os.Stat(filepath.Join(m.Dir, configFile)); err != nil && !mayBeMiniLM {
		return folder{}, fmt.Errorf("open the model: %w: give the folder with all files of the model", err)
	}
	for _, step := range []func(string) error{m.readShape, m.readTokenizer, m.readLimit} {
		if err := step(m.Dir); err != nil {
			return folder{}, err
		}
	}
	m.MaxTokens = min(m.MaxTokens, m.Shape.maxTokens())
	return m, m.readPrompts(dir)
}

// maxFile bounds a configuration file. Most have some kB; lists of labels are longer.
const maxFile = 4 << 20

// readJSON decodes a file of the folder into v. If the file or a field is missing, v stays unchanged. found is false
// if the file is missing.
func readJSON(dir, name string, v any) (found bool, err error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the model's configuration: %w", err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("read the model's configuration: %s is not a file", path)
	case info.Size() > maxFile:
		return false, fmt.Errorf("%s: more than %d bytes: not the configuration of a model", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("read the model's configuration: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, fmt.Errorf("%s: %.300v", path, err)
	}
	return true, nil
}

// unsupported is the error for an unsupported model. It truncates long values from the file.
func unsupported(dir, name, reason string, args ...any) error {
	return fmt.Errorf("%s: model is not supported: %.500s", filepath.Join(dir, filepath.FromSlash(name)), fmt.Sprintf(reason, args...))
}

// below returns a folder that a configuration names. The folder must be inside dir.
func below(dir, from, path string) (string, error) {
	if path == "" {
		return dir, nil
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", unsupported(dir, from, "path %q leads out of the model's folder", path)
	}
	return filepath.Join(dir, filepath.FromSlash(path)), nil
}

// readTokenizer reads the tokenizer's limit, and whether the tokenizer gives segments.
func (m *folder) readTokenizer(dir string) error {
	f := struct {
		Limit  float64  `json:"model_max_length"` // 1e30 if there is none
		Inputs []string `json:"model_input_names"`
	}{Limit: float64(m.MaxTokens)}
	if _, err := readJSON(dir, "tokenizer_config.json", &f); err != nil {
		return err
	}
	m.MaxTokens = int(min(f.Limit, math.MaxInt32))
	m.oneSegment = f.Inputs != nil && !slices.Contains(f.Inputs, "token_type_ids")
	return nil
}

// limitFiles are possible names of the transformer's configuration file, in the search order of
// sentence-transformers.
var limitFiles = []string{
	"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json", "sentence_xlm-roberta_config.json",
}

// unknownLimits are settings in that file that change which tokens a model reads.
var unknownLimits = []string{
	"processing_kwargs", "processor_kwargs", "tokenizer_args", "config_kwargs", "config_args",
	"query_length", "document_length", "query_expansion",
}

// readLimit reads the limit that overrides the tokenizer's limit.
func (m *folder) readLimit(dir string) error {
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
		return unsupported(dir, name, "%d tokens have no room for [cls] and [SEP]", m.MaxTokens)
	}
	return nil
}

const promptsFile = "config_sentence_transformers.json"

// readPrompts reads the prompts of queries and passages, and how vectors are compared.
func (m *folder) readPrompts(dir string) error {
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

const (
	modulesFile = "modules.json"
	poolingFile = "1_Pooling/config.json"
)

// module is an entry of modules.json.
type module struct {
	Type string `json:"type"`
	Path string `json:"path"`
}

// kind returns the type without its package, which differs between versions.
func (m module) kind() string { return m.Type[strings.LastIndexByte(m.Type, '.')+1:] }

// readModules reads modules.json and the files of each module. Without modules.json a model has mean pooling and
// vectors of length 1.
func (m *folder) readModules(dir string) error {
	var modules []module
	found, err := readJSON(dir, modulesFile, &modules)
	if err != nil {
		return err
	}
	if !found {
		return m.readPooling(dir, poolingFile)
	}
	if len(modules) > 16 {
		return unsupported(dir, modulesFile, "%d modules", len(modules))
	}
	m.Normalize = false
	for i, part := range modules {
		path, err := below(dir, modulesFile, part.Path)
		if err != nil {
			return err
		}
		switch kind := part.kind(); {
		case kind == "Transformer" && i == 0:
			m.Dir = path
		case kind == "Pooling" && i > 0 && !m.Pooled:
			m.Pooled = true
			name := poolingFile
			if part.Path != "" {
				name = strings.TrimSuffix(part.Path, "/") + "/config.json"
			}
			err = m.readPooling(dir, name)
		case kind == "Dense" && m.Pooled && !m.Normalize:
			err = m.readDense(dir, part.Path)
		case kind == "Normalize" && i > 0:
			m.Normalize = true
		case slices.Contains([]string{"Transformer", "Pooling", "Dense", "Normalize"}, kind):
			err = unsupported(dir, modulesFile, "module %q in place %d, the order is Transformer, Pooling, Dense, Normalize", part.Type, i+1)
		default:
			err = unsupported(dir, modulesFile, "module %q, only Transformer, Pooling, Dense and Normalize are", part.Type)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *folder) readPooling(dir, name string) error {
	f := map[string]any{}
	if _, err := readJSON(dir, name, &f); err != nil {
		return err
	}
	var modes []string
	if mode := f["pooling_mode"]; mode != nil {
		modes = append(modes, fmt.Sprint(mode))
	} else { // older files have a switch for each mode
		for key, value := range f {
			if mode, ok := strings.CutPrefix(key, "pooling_mode_"); ok && value == true {
				modes = append(modes, strings.TrimSuffix(mode, "_tokens"))
			}
		}
		slices.Sort(modes)
	}
	if len(modes) == 0 {
		modes = append(modes, string(mean))
	}
	if include, ok := f["include_prompt"].(bool); ok {
		m.IncludePrompt = include
	}
	switch mode := strings.Join(modes, " and "); mode {
	case "mean", "cls", "lasttoken":
		m.Pooling = pooling(mode)
	case "cls_token":
		m.Pooling = cls
	default:
		return unsupported(dir, name, "pooling by %s, only mean, cls or lasttoken is", mode)
	}
	return nil
}

// Dense is a linear layer over the pooled vector.
type Dense struct {
	Dir        string // folder of its weights
	In, Out    int
	Bias       bool
	Activation activation
}

func (m *folder) readDense(dir, path string) error {
	name := strings.TrimSuffix(path, "/") + "/config.json"
	f := struct {
		In         int    `json:"in_features"`
		Out        int    `json:"out_features"`
		Bias       bool   `json:"bias"`
		Activation string `json:"activation_function"`
		Input      string `json:"module_input_name"`
		Output     string `json:"module_output_name"`
		Residual   bool   `json:"use_residual"`
	}{Bias: true, Activation: "torch.nn.modules.activation.Tanh", Input: vectorName}
	found, err := readJSON(dir, name, &f)
	if err != nil {
		return err
	}
	activation, known := activationOf(f.Activation)
	switch {
	case !found || path == "":
		return unsupported(dir, modulesFile, "module Dense without %s", name)
	case !known:
		return unsupported(dir, name, "activation_function is %q, only Identity, Tanh, ReLU, GELU and Sigmoid of torch.nn are", f.Activation)
	case f.Input != vectorName || f.Output != "" && f.Output != vectorName:
		return unsupported(dir, name, "module_input_name is %q and module_output_name %q, only %q is", f.Input, f.Output, vectorName)
	case f.Residual:
		return unsupported(dir, name, "use_residual is true")
	case min(f.In, f.Out) < 1 || max(f.In, f.Out) > maxSize:
		return unsupported(dir, name, "in_features is %d and out_features %d", f.In, f.Out)
	}
	m.Dense = append(m.Dense, Dense{filepath.Join(dir, filepath.FromSlash(path)), f.In, f.Out, f.Bias, activation})
	return nil
}

// vectorName is sentence-transformers' name for the vector of a text.
const vectorName = "sentence_embedding"
