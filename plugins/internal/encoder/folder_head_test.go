package encoder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestHead(t *testing.T) {
	const class = `"architectures":["BertForSequenceClassification"]`
	for name, c := range map[string]struct {
		config, st string
		want       Head
	}{
		"one label":     {`{` + class + `,"id2label":{"0":"LABEL_0"}}`, ``, Head{Labels: 1, Activation: sigmoid, Pooling: cls}},
		"activation":    {`{` + class + `,"num_labels":1,"sentence_transformers":{"activation_fn":"torch.nn.modules.linear.Identity"}}`, ``, Head{Labels: 1, Activation: identity, Pooling: cls}},
		"as it was":     {`{` + class + `,"num_labels":1,"sbert_ce_default_activation_function":"torch.nn.modules.activation.Tanh"}`, ``, Head{Labels: 1, Activation: tanh, Pooling: cls}},
		"as it is":      {`{` + class + `,"num_labels":1,"sbert_ce_default_activation_function":"torch.nn.Tanh"}`, `{"activation_fn":"torch.nn.modules.linear.Identity"}`, Head{Labels: 1, Activation: identity, Pooling: cls}},
		"two labels":    {`{` + class + `,"id2label":{"0":"irrelevant","1":"Relevant"}}`, ``, Head{Labels: 2, Label: 1, Activation: identity, Pooling: cls}},
		"three labels":  {`{` + class + `,"id2label":{"0":"contradiction","1":"entailment","2":"neutral"}}`, ``, Head{Labels: 3, Label: 1, Activation: identity, Pooling: cls}},
		"mean of heads": {`{` + class + `,"num_labels":1,"classifier_pooling":"mean"}`, ``, Head{Labels: 1, Activation: sigmoid, Pooling: mean}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"config.json": c.config}
			if c.st != "" {
				files["config_sentence_transformers.json"] = c.st
			}
			m, err := readFolder(write(t, files), true)
			must.Do(t, err)
			if got, err := m.Head(); err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestHeadRefused(t *testing.T) {
	const class = `"architectures":["BertForSequenceClassification"]`
	for name, c := range map[string]struct{ config, want string }{
		"an encoder":       {`{"architectures":["BertModel"]}`, `it is no cross-encoder: architectures is ["BertModel"]`},
		"nothing said":     {`{}`, "it is no cross-encoder"},
		"two labels":       {`{` + class + `}`, "the head gives 2 numbers"},
		"two of relevance": {`{` + class + `,"id2label":{"0":"yes","1":"true"}}`, "the head gives 2 numbers"},
		"beyond":           {`{` + class + `,"id2label":{"0":"no","7":"yes"}}`, "the head gives 2 numbers"},
		"activation":       {`{` + class + `,"num_labels":1,"sentence_transformers":{"activation_fn":"own.Code"}}`, "own.Code"},
		"many labels":      {`{` + class + `,"num_labels":1000000000}`, "num_labels is 1000000000"},
		"pooling":          {`{` + class + `,"num_labels":1,"classifier_pooling":"max"}`, `classifier_pooling is "max"`},
		"activation of it": {`{` + class + `,"num_labels":1,"classifier_activation":"relu"}`, `classifier_activation is "relu"`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := readFolder(write(t, map[string]string{"config.json": c.config}), true)
			must.Do(t, err)
			if _, err := m.Head(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "config.json") {
				t.Errorf("error %v, want the file's name and %q", err, c.want)
			}
		})
	}
}

func TestHeadOfPairs(t *testing.T) {
	const config = `{"architectures":["BertForSequenceClassification"],"num_labels":1}`
	for inputs, want := range map[string]bool{`["input_ids","attention_mask"]`: true, `["input_ids","token_type_ids"]`: false, `null`: false} {
		m, err := readFolder(write(t, map[string]string{"config.json": config, "tokenizer_config.json": `{"model_input_names":` + inputs + `}`}), true)
		must.Do(t, err)
		if h, err := m.Head(); err != nil || h.OneSegment != want {
			t.Errorf("%s: %+v, %v", inputs, h, err)
		}
	}
	m, err := readFolder(write(t, map[string]string{"config.json": config, promptsFile: `{"prompts":{"q":"query: "},"default_prompt_name":"q"}`}), true)
	must.Do(t, err)
	if _, err := m.Head(); err == nil || !strings.Contains(err.Error(), promptsFile) || !strings.Contains(err.Error(), `default_prompt_name puts "query: "`) {
		t.Errorf("a prompt before queries: %v", err)
	}
}

// FuzzFolder reads configurations with any content: they are read or refused.
func FuzzFolder(f *testing.F) {
	f.Add(`{"model_type":"modernbert","layer_types":["full_attention"],"num_hidden_layers":1}`, `[{"type":"a.Transformer","path":"x"}]`, `{"pooling_mode":"cls"}`, `{"max_seq_length":12}`)
	f.Add(`{"model_type":"mpnet","hidden_size":8,"num_attention_heads":2}`, `[{"type":"a.Pooling"}]`, `{"pooling_mode_mean_tokens":true}`, `{"prompts":{"query":"q"},"default_prompt_name":"query"}`)
	f.Add(`{"architectures":["XForSequenceClassification"],"id2label":{"1":"yes"}}`, `null`, `[]`, `{"model_max_length":1e30}`)
	dir := f.TempDir()
	must.Do(f, os.Mkdir(filepath.Join(dir, "1_Pooling"), 0o755))
	f.Fuzz(func(t *testing.T, config, modules, pooling, other string) {
		for name, text := range map[string]string{
			"config.json": config, "modules.json": modules, "1_Pooling/config.json": pooling, "sentence_bert_config.json": other,
			"tokenizer_config.json": other, "config_sentence_transformers.json": other,
		} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		m, err := readFolder(dir, false)
		if err != nil {
			return
		}
		s := m.Shape
		if s.Hidden < 1 || s.Hidden > maxSize || s.headSize()*s.Heads != s.Hidden || m.MaxTokens < 2 || m.MaxTokens > maxPositions || len(s.Global) > s.Layers {
			t.Errorf("%q: %+v", config, m)
		}
		if h, err := m.Head(); err == nil && (h.Label < 0 || h.Label >= h.Labels) {
			t.Errorf("%q: %+v", config, h)
		}
	})
}
