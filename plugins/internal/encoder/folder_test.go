package encoder

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// write writes files, by name, to a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

// same compares models, except for fields that only Head reads.
func same(got, want folder) bool {
	got.head, want.head, got.scores, want.scores, got.defaultPrompt = headJSON{}, headJSON{}, "", "", ""
	return reflect.DeepEqual(got, want)
}

func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	got, err := readFolder(dir, true)
	if err != nil || !same(got, miniLM(dir)) {
		t.Errorf("empty folder: got %+v, %v", got, err)
	}
	if _, err := readFolder(dir, false); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("empty folder that is not MiniLM: error %v", err)
	}
}

// TestMiniLM reads the files in the form of all-MiniLM-L6-v2.
func TestMiniLM(t *testing.T) {
	dir := write(t, map[string]string{
		"config.json": `{"_name_or_path":"nreimers/MiniLM-L6-H384-uncased","architectures":["BertModel"],"attention_probs_dropout_prob":0.1,
			"gradient_checkpointing":false,"hidden_act":"gelu","hidden_dropout_prob":0.1,"hidden_size":384,"initializer_range":0.02,
			"intermediate_size":1536,"layer_norm_eps":1e-12,"max_position_embeddings":512,"model_type":"bert","num_attention_heads":12,
			"num_hidden_layers":6,"pad_token_id":0,"position_embedding_type":"absolute","type_vocab_size":2,"use_cache":true,"vocab_size":30522}`,
		"modules.json": `[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
			{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
			{"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`,
		"1_Pooling/config.json": `{"word_embedding_dimension":384,"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true,
			"pooling_mode_max_tokens":false,"pooling_mode_mean_sqrt_len_tokens":false}`,
		"sentence_bert_config.json": `{"max_seq_length":256,"do_lower_case":false}`,
		"tokenizer_config.json":     `{"do_lower_case":true,"model_max_length":512,"strip_accents":null,"tokenize_chinese_chars":true}`,
	})
	want := miniLM(dir)
	want.Pooled = true
	if got, err := readFolder(dir, false); err != nil || !same(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFields(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		set        func(*folder)
	}{
		"limit":             {"sentence_bert_config.json", `{"max_seq_length":128}`, func(m *folder) { m.MaxTokens = 128 }},
		"no limit given":    {"sentence_bert_config.json", `{"max_seq_length":null}`, func(*folder) {}},
		"limit, older name": {"sentence_roberta_config.json", `{"max_seq_length":128}`, func(m *folder) { m.MaxTokens = 128 }},
		"no arguments":      {"sentence_bert_config.json", `{"tokenizer_args":{},"config_args":{"trust_remote_code":true},"query_length":null,"model_args":{"x":1}}`, func(*folder) {}},
		"lower case":        {"sentence_bert_config.json", `{"do_lower_case":true}`, func(m *folder) { m.LowerCase = true }},
		"no limit":          {"tokenizer_config.json", `{"model_max_length":1000000000000000019884624838656}`, func(m *folder) { m.MaxTokens = 512 }},
		"cls":               {"1_Pooling/config.json", `{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`, func(m *folder) { m.Pooling = cls }},
		"new before old":    {"1_Pooling/config.json", `{"pooling_mode":"cls","pooling_mode_mean_tokens":true}`, func(m *folder) { m.Pooling = cls }},
		"mean":              {"1_Pooling/config.json", `{"pooling_mode_mean_tokens":true}`, func(*folder) {}},
		"last":              {"1_Pooling/config.json", `{"pooling_mode":"lasttoken","include_prompt":false}`, func(m *folder) { m.Pooling, m.IncludePrompt = lastToken, false }},
		"last, as it was": {"1_Pooling/config.json", `{"pooling_mode_lasttoken":true}`, func(m *folder) {
			m.Pooling = lastToken
		}},
		"not normalised": {"modules.json", `[{"type":"sentence_transformers.models.Transformer"}]`, func(m *folder) { m.Normalize = false }},
		"folder of the transformer": {"modules.json", `[{"type":"sentence_transformers.models.Transformer","path":"0_Transformer"}]`, func(m *folder) {
			m.Normalize, m.Dir = false, filepath.Join(m.Dir, "0_Transformer")
		}},
		"prompts": {"config_sentence_transformers.json", `{"prompts":{"query":"query: ","document":"","passage":"p: "},"similarity_fn_name":"dot"}`,
			func(m *folder) { m.QueryPrompt = "query: " }},
		"default prompt": {"config_sentence_transformers.json", `{"prompts":{"query":null,"passage":"p: ","all":"a: "},"default_prompt_name":"all","similarity_fn_name":null}`,
			func(m *folder) { m.QueryPrompt, m.PassagePrompt = "a: ", "p: " }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, map[string]string{c.file: c.text})
			want := miniLM(dir)
			c.set(&want)
			if got, err := readFolder(dir, true); err != nil || !same(got, want) {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestDense(t *testing.T) {
	dir := write(t, map[string]string{
		"modules.json": `[{"type":"sentence_transformers.models.Transformer","path":""},{"type":"sentence_transformers.models.Pooling","path":"1_Pooling"},
			{"type":"sentence_transformers.base.modules.dense.Dense","path":"2_Dense"},{"type":"a.Dense","path":"3_Dense"},{"type":"a.b.Normalize","path":"4_Normalize"}]`,
		"1_Pooling/config.json": `{"pooling_mode":"cls"}`,
		"2_Dense/config.json":   `{"in_features":384,"out_features":64,"bias":false,"activation_function":"torch.nn.modules.linear.Identity"}`,
		"3_Dense/config.json":   `{"in_features":64,"out_features":32,"module_input_name":"sentence_embedding","module_output_name":null}`,
	})
	want := miniLM(dir)
	want.Pooled, want.Pooling = true, cls
	want.Dense = []Dense{
		{filepath.Join(dir, "2_Dense"), 384, 64, false, identity},
		{filepath.Join(dir, "3_Dense"), 64, 32, true, tanh},
	}
	if got, err := readFolder(dir, true); err != nil || !same(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

const robertaFields = `,"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":96,"max_position_embeddings":42,"layer_norm_eps":1e-5}`

func TestShapes(t *testing.T) {
	base := Config{Hidden: 64, Layers: 2, Heads: 4, Intermediate: 96, Positions: 42, Epsilon: 1e-5}
	roberta, xlm, mpnet, modern, distil := base, base, base, base, base
	roberta.Family, roberta.Padding = RoBERTa, 1
	xlm.Family, xlm.Padding = xlmRoBERTa, 5
	mpnet.Family, mpnet.Padding, mpnet.Buckets = MPNet, 1, 32
	distil.Family, distil.Epsilon = distilBERT, 1e-12
	modern.Family, modern.Window, modern.GlobalTheta, modern.LocalTheta = modernBERT, 64, 160000, 10000
	modern.Global = []bool{true, false}
	modern5 := modern
	modern5.Window, modern5.GlobalTheta, modern5.LocalTheta, modern5.Global = 8, 500, 20, []bool{false, true}
	for name, c := range map[string]struct {
		text   string
		want   Config
		tokens int
	}{
		"roberta":    {`{"model_type":"roberta"` + robertaFields, roberta, 40},
		"xlm":        {`{"model_type":"xlm-roberta","pad_token_id":5` + robertaFields, xlm, 36},
		"mpnet":      {`{"model_type":"mpnet","relative_attention_num_buckets":32,"pad_token_id":7` + robertaFields, mpnet, 40},
		"distilbert": {`{"model_type":"distilbert","dim":64,"n_layers":2,"n_heads":4,"hidden_dim":96,"max_position_embeddings":42,"activation":"gelu"}`, distil, 42},
		"modernbert": {`{"model_type":"modernbert","norm_eps":1e-5` + robertaFields, modern, 42},
		"modernbert of transformers 5": {`{"model_type":"modernbert","norm_eps":1e-5,"local_attention":16,"layer_types":["sliding_attention","full_attention"],
			"rope_parameters":{"full_attention":{"rope_type":"default","rope_theta":500},"sliding_attention":{"rope_type":"default","rope_theta":20}}` + robertaFields, modern5, 42},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := readFolder(write(t, map[string]string{"config.json": c.text}), false)
			if err != nil || !reflect.DeepEqual(m.Shape, c.want) || m.MaxTokens != c.tokens {
				t.Errorf("got %+v, %d tokens, %v, want %+v", m.Shape, m.MaxTokens, err, c.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	modules := func(types ...string) string {
		var text []string
		for _, kind := range types {
			text = append(text, fmt.Sprintf(`{"type":"sentence_transformers.models.%s","path":"x"}`, kind))
		}
		return "[" + strings.Join(text, ",") + "]"
	}
	modern := func(fields string) string {
		return `{"model_type":"modernbert","norm_eps":1e-5,` + fields + robertaFields
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"broken":          {"config.json", `{`, "config.json"},
		"architecture":    {"config.json", `{"model_type":"deberta-v2"}`, `model_type is "deberta-v2", only bert, distilbert, roberta, xlm-roberta, mpnet, modernbert are`},
		"activation":      {"config.json", `{"hidden_act":"relu"}`, `hidden_act is "relu"`},
		"distil":          {"config.json", `{"model_type":"distilbert","activation":"relu"}`, `activation is "relu"`},
		"modern":          {"config.json", modern(`"hidden_activation":"silu"`), `hidden_activation is "silu"`},
		"positions":       {"config.json", `{"position_embedding_type":"relative_key"}`, "relative_key"},
		"decoder":         {"config.json", `{"is_decoder":true}`, "is_decoder"},
		"heads":           {"config.json", `{"num_attention_heads":7}`, "7 heads"},
		"size":            {"config.json", `{"num_attention_heads":0}`, "zero"},
		"huge":            {"config.json", `{"hidden_size":4611686018427387904,"num_attention_heads":1}`, "at most"},
		"huge layers":     {"config.json", `{"model_type":"modernbert","num_hidden_layers":1000000000}`, "num_hidden_layers"},
		"huge positions":  {"config.json", `{"max_position_embeddings":1000000000}`, "max_position_embeddings is 1000000000"},
		"huge number":     {"config.json", `{"hidden_size":1e400}`, "hidden_size"},
		"wrong type":      {"config.json", `{"hidden_size":"many"}`, "hidden_size"},
		"epsilon":         {"config.json", `{"layer_norm_eps":-1}`, "zero"},
		"padding":         {"config.json", `{"model_type":"roberta","pad_token_id":600}`, "zero"},
		"buckets":         {"config.json", `{"model_type":"mpnet","relative_attention_num_buckets":-8}`, "relative_attention_num_buckets is -8"},
		"rope type":       {"config.json", modern(`"rope_parameters":{"full_attention":{"rope_type":"yarn"}}`), `rope_type is "yarn"`},
		"rope scaling":    {"config.json", modern(`"rope_scaling":{"rope_type":"linear"}`), `"linear"`},
		"theta":           {"config.json", modern(`"global_rope_theta":0`), "rope_theta is 0"},
		"window":          {"config.json", modern(`"local_attention":-4`), "local_attention is -4"},
		"every":           {"config.json", modern(`"global_attn_every_n_layers":0`), "global_attn_every_n_layers is 0"},
		"layer types":     {"config.json", modern(`"layer_types":["full_attention"]`), "layer_types are of 1 layers"},
		"layer type":      {"config.json", modern(`"layer_types":["full_attention","chunked_attention"]`), "chunked_attention"},
		"odd heads":       {"config.json", `{"model_type":"modernbert","hidden_size":15,"num_attention_heads":5,"num_hidden_layers":1}`, "pairs"},
		"limit":           {"sentence_bert_config.json", `{"max_seq_length":1}`, "no room"},
		"limit of texts":  {"sentence_bert_config.json", `{"processing_kwargs":{"text":{"max_length":16}}}`, "processing_kwargs is"},
		"tokenizer's":     {"sentence_bert_config.json", `{"tokenizer_args":{"model_max_length":16}}`, "tokenizer_args is"},
		"query length":    {"sentence_distilbert_config.json", `{"query_length":16}`, "query_length is 16"},
		"tokenizer":       {"tokenizer_config.json", `{"model_max_length":"many"}`, "model_max_length"},
		"pooling":         {"1_Pooling/config.json", `{"pooling_mode_max_tokens":true}`, "pooling by max"},
		"weighted":        {"1_Pooling/config.json", `{"pooling_mode":"weightedmean"}`, "pooling by weightedmean"},
		"two poolings":    {"1_Pooling/config.json", `{"pooling_mode":["mean","max"]}`, "pooling by [mean max]"},
		"two switches":    {"1_Pooling/config.json", `{"pooling_mode_mean_tokens":true,"pooling_mode_max_tokens":true}`, "pooling by max and mean"},
		"dense":           {"modules.json", modules("Dense"), "Dense"},
		"order":           {"modules.json", modules("Transformer", "Dense"), "the order is"},
		"dense, no file":  {"modules.json", modules("Transformer", "Pooling", "Dense"), "without x/config.json"},
		"router":          {"modules.json", modules("Router"), "Router"},
		"module's folder": {"modules.json", `[{"type":"a.Transformer","path":"../../x"}]`, `path "../../x" leads out`},
		"absolute folder": {"modules.json", `[{"type":"a.Transformer","path":"/etc"}]`, `leads out`},
		"many modules":    {"modules.json", "[" + strings.Repeat(`{},`, 100) + `{}]`, "101 modules"},
		"similarity":      {"config_sentence_transformers.json", `{"similarity_fn_name":"euclidean"}`, "euclidean"},
		"long name":       {"config.json", `{"hidden_act":"` + strings.Repeat("x", 1<<20) + `"}`, `hidden_act is "xxx`},
		"long number":     {"config.json", `{"hidden_act":` + strings.Repeat("1", 1<<20) + `}`, "cannot unmarshal"},
		"large file":      {"config.json", `{"x":"` + strings.Repeat("x", maxFile) + `"}`, "more than"},
		"deep":            {"config.json", strings.Repeat(`{"x":`, 20000), "config.json"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readFolder(write(t, map[string]string{c.file: c.text}), true)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.FromSlash(c.file)) || len(err.Error()) > 1000 {
				t.Errorf("error %.300v, want the file's name and %q", err, c.want)
			}
		})
	}
}

func TestDenseRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"activation": {`{"in_features":4,"out_features":4,"activation_function":"torch.nn.modules.activation.SiLU"}`, "SiLU"},
		"own code":   {`{"in_features":4,"out_features":4,"activation_function":"evil.Tanh"}`, "evil.Tanh"},
		"residual":   {`{"in_features":4,"out_features":4,"use_residual":true}`, "use_residual"},
		"of tokens":  {`{"in_features":4,"out_features":4,"module_input_name":"token_embeddings"}`, "token_embeddings"},
		"size":       {`{"in_features":4,"out_features":-4}`, "out_features -4"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readFolder(write(t, map[string]string{
				"modules.json":    `[{"type":"a.Transformer"},{"type":"a.Pooling","path":"1_Pooling"},{"type":"a.Dense","path":"d"}]`,
				"d/config.json":   c.text,
				"1_Pooling/a.txt": "",
			}), true)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Join("d", "config.json")) {
				t.Errorf("error %v, want the file's name and %q", err, c.want)
			}
		})
	}
}
