package folder

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const (
	modulesFile = "modules.json"
	poolingFile = "1_Pooling/config.json"
)

// module is an entry of modules.json.
type module struct {
	Type string `json:"type"`
	Path string `json:"path"`
}

// kind is the type without the package it comes from, which differs between versions.
func (m module) kind() string { return m.Type[strings.LastIndexByte(m.Type, '.')+1:] }

// readModules reads modules.json and what belongs to each module. Without it a model has
// mean pooling and vectors of length 1.
func (m *Model) readModules(dir string) error {
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

func (m *Model) readPooling(dir, name string) error {
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
		modes = append(modes, string(Mean))
	}
	if include, ok := f["include_prompt"].(bool); ok {
		m.IncludePrompt = include
	}
	switch mode := strings.Join(modes, " and "); mode {
	case "mean", "cls", "lasttoken":
		m.Pooling = Pooling(mode)
	case "cls_token":
		m.Pooling = CLS
	default:
		return unsupported(dir, name, "pooling by %s, only mean, cls or lasttoken is", mode)
	}
	return nil
}

// Dense is a linear layer over the pooled vector.
type Dense struct {
	Dir        string // that holds its weights
	In, Out    int
	Bias       bool
	Activation Activation
}

func (m *Model) readDense(dir, path string) error {
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

// vectorName is what sentence-transformers call the vector of a text.
const vectorName = "sentence_embedding"
