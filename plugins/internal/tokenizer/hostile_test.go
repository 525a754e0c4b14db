package tokenizer

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// with returns the text of a tokenizer.json with some parts replaced.
func with(parts map[string]string) []byte {
	all := map[string]string{
		"version":        `"1.0"`,
		"added_tokens":   `[{"id": 1, "content": "[CLS]", "special": true}, {"id": 4, "content": "new"}]`,
		"normalizer":     `{"type": "Lowercase"}`,
		"pre_tokenizer":  `{"type": "Whitespace"}`,
		"post_processor": `{"type": "BertProcessing", "sep": ["[CLS]", 1], "cls": ["[CLS]", 1]}`,
		"model":          `{"type": "WordPiece", "vocab": {"[UNK]": 0, "[CLS]": 1, "a": 2, "##b": 3}}`,
	}
	for name, text := range parts {
		all[name] = text
	}
	var b strings.Builder
	for name, text := range all {
		if text != "" {
			fmt.Fprintf(&b, ",%q: %s", name, text)
		}
	}
	return []byte("{" + b.String()[1:] + "}")
}

func TestWith(t *testing.T) {
	tok, err := New(with(nil), "tokenizer.json")
	must.Do(t, err)
	if got := fmt.Sprint(tok.Encode("AB new a", 9), tok.Size()); got != "[1 2 3 4 2 1] 5" {
		t.Error(got)
	}
}

// sequences returns a part of nested sequences.
func sequences(field string, depth int) string {
	return strings.Repeat(`{"type": "Sequence", "`+field+`": [`, depth) + strings.Repeat("]}", depth)
}

// many are members of a vocabulary.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%x":%d,`, i, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestHostile(t *testing.T) {
	template := func(single, pair, specials string) string {
		return `{"type": "TemplateProcessing", "single": [` + single + `], "pair": [` + pair + `], "special_tokens": {` + specials + `}}`
	}
	const a, b, cls = `{"Sequence": {"id": "A", "type_id": 0}}`, `{"Sequence": {"id": "B", "type_id": 1}}`, `{"SpecialToken": {"id": "[CLS]", "type_id": 0}}`
	replace := func(pattern, content string) string {
		return `{"type": "Replace", "pattern": ` + pattern + `, "content": "` + content + `"}`
	}
	split := func(regex string) string {
		return `{"type": "Split", "pattern": {"Regex": "` + regex + `"}, "behavior": "Isolated", "invert": false}`
	}
	for name, c := range map[string]struct {
		part, text, want string
	}{
		"version":               {"version", `"2.0"`, `version "2.0" is not supported`},
		"truncation":            {"truncation", `{"direction": "Left"}`, "truncation on the left is not supported"},
		"wrong type":            {"added_tokens", `7`, "cannot unmarshal number"},
		"added empty":           {"added_tokens", `[{"id": 4, "content": ""}]`, "added_tokens: the token with id 4 is empty"},
		"added twice":           {"added_tokens", `[{"id": 4, "content": "x"}, {"id": 5, "content": "x"}]`, `token "x" occurs twice`},
		"added alike":           {"added_tokens", `[{"id": 4, "content": "x", "normalized": true}, {"id": 5, "content": "X", "normalized": true}]`, `the tokens with ids 4 and 5 are both "x"`},
		"added elsewhere":       {"added_tokens", `[{"id": 1, "content": "a"}]`, `token "a" has id 1, in the model it has 2`},
		"added far away":        {"added_tokens", `[{"id": 2000000000, "content": "x"}]`, `has id 2000000000: the next free one is 4`},
		"added huge":            {"added_tokens", `[{"id": 4e30, "content": "x"}]`, "4e30"},
		"added negative":        {"added_tokens", `[{"id": -1, "content": "x"}]`, "has id -1"},
		"added long":            {"added_tokens", `[{"id": 4, "content": "` + strings.Repeat("x", 1<<20) + `"}]`, "has 1048576 bytes: 512 are possible"},
		"normalizer":            {"normalizer", `{"type": "Rot13"}`, "normalizer: Rot13: this type of normalizer is not supported"},
		"normalizer bare":       {"normalizer", `{}`, "a normalizer without a type"},
		"normalizer deep":       {"normalizer", sequences("normalizers", 500), "normalizer: more than 8 sequences in each other"},
		"normalizer long":       {"normalizer", `{"type": "Sequence", "normalizers": [` + strings.Repeat(`{"type": "NFC"},`, 1e5) + `{"type": "NFC"}]}`, "more than 64 steps"},
		"replace with much":     {"normalizer", replace(`{"String": "a"}`, strings.Repeat("x", 33)), "the content is longer than 32 bytes"},
		"replace nothing":       {"normalizer", replace(`{"String": ""}`, "x"), "neither a string nor a regular expression"},
		"replace empty":         {"normalizer", replace(`{"Regex": "a*"}`, "x"), "it matches the empty string"},
		"map":                   {"normalizer", `{"type": "Precompiled", "precompiled_charsmap": "////fwAA"}`, "normalizer: Precompiled:"},
		"map cut":               {"normalizer", `{"type": "Precompiled", "precompiled_charsmap": "%"}`, "normalizer: Precompiled:"},
		"pre-tokenizer":         {"pre_tokenizer", `{"type": "Delimiter"}`, "pre_tokenizer: Delimiter: this type of pre-tokenizer is not supported"},
		"pre-tokenizer deep":    {"pre_tokenizer", sequences("pretokenizers", 500), "pre_tokenizer: more than 8 sequences in each other"},
		"anchor":                {"pre_tokenizer", split(`^a`), "it has the anchor"},
		"boundary":              {"pre_tokenizer", split(`a\\b`), `it has \b`},
		"word characters":       {"pre_tokenizer", split(`\\w+`), `it has \w`},
		"class in class":        {"pre_tokenizer", split(`[a[b]]`), "it has a class in a class"},
		"intersection":          {"pre_tokenizer", split(`[a&&b]`), "it has a class in a class"},
		"dot of all":            {"pre_tokenizer", split(`(?m:a.)`), "it has (?m"},
		"possessive":            {"pre_tokenizer", split(`a++`), "is not supported"},
		"expression long":       {"pre_tokenizer", split(strings.Repeat("a", 5000)), "has 5000 bytes: 4096 are possible"},
		"behavior":              {"pre_tokenizer", `{"type": "Punctuation", "behavior": "Eaten"}`, `behavior "Eaten" is not supported`},
		"no behavior":           {"pre_tokenizer", `{"type": "Split", "pattern": {"String": "a"}}`, "it has no behavior"},
		"metaspace, first":      {"pre_tokenizer", `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}`, "behind a normalizer is not supported"},
		"metaspace":             {"pre_tokenizer", `{"type": "Metaspace", "replacement": "__"}`, "replacement is not one character"},
		"post-processor":        {"post_processor", `{"type": "Other"}`, `post_processor: type "Other" is not supported`},
		"post-processors":       {"post_processor", `{"type": "Sequence", "processors": [` + strings.Repeat(`{"type": "BertProcessing", "sep": ["", 1], "cls": ["", 1]},`, 2) + `{"type": "ByteLevel"}]}`, "more than one that adds tokens"},
		"post-processor id":     {"post_processor", `{"type": "BertProcessing", "sep": ["x", 99], "cls": ["y", 1]}`, "id 99 is beyond the vocabulary of 5 tokens"},
		"template id":           {"post_processor", template(cls+","+a, a+","+b, `"[CLS]": {"ids": [-3]}`), "id -3 is beyond the vocabulary"},
		"template token":        {"post_processor", template(cls+","+a, a+","+b, ``), `single uses the token "[CLS]", which special_tokens lacks`},
		"template without text": {"post_processor", template(cls, a+","+b, `"[CLS]": {"ids": [1]}`), "single does not have each of its sequences once"},
		"template with two":     {"post_processor", template(a+","+b, a+","+b, ``), "single does not have each of its sequences once"},
		"template kinds":        {"post_processor", template(a, b+","+a, ``), "pair has the type id 0 after 1, which is not supported"},
		"template long":         {"post_processor", template(a+strings.Repeat(","+cls, 1000), a, `"[CLS]": {"ids": [1]}`), "single has 1001 parts"},
		"template empty part":   {"post_processor", template(a+",{}", a, ``), "neither a sequence nor a special token"},
		"no model":              {"model", "", "model: "},
		"model":                 {"model", `{"type": "WordLevel", "vocab": {}}`, `model: type "WordLevel" is not supported`},
		"unknown token":         {"model", `{"type": "WordPiece", "vocab": {"a": 0}}`, `the vocabulary of 1 tokens lacks the unknown token "[UNK]"`},
		"same id":               {"model", `{"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 0}}`, `tokens "[UNK]" and "a" have the same id 0`},
		"negative id":           {"model", `{"type": "WordPiece", "vocab": {"[UNK]": -1}}`, `token "[UNK]" has the impossible id -1`},
		"huge id":               {"model", `{"type": "WordPiece", "vocab": {"[UNK]": 2147483647}}`, `has the impossible id 2147483647`},
		"fraction as id":        {"model", `{"type": "WordPiece", "vocab": {"[UNK]": 1.5}}`, `has the impossible id 1.5`},
		"list of tokens":        {"model", `{"type": "WordPiece", "vocab": ["[UNK]"]}`, "vocab is not an object"},
		"too many tokens":       {"model", `{"type": "WordPiece", "vocab": {` + many(1<<21+1) + `}}`, "it has more than 2097152 tokens"},
		"words of no length":    {"model", `{"type": "WordPiece", "vocab": {"[UNK]": 0}, "max_input_chars_per_word": 0}`, "max_input_chars_per_word is 0"},
		"long token":            {"model", `{"type": "WordPiece", "vocab": {"[UNK]": 0, "` + strings.Repeat("a", 600) + `": 1}, "max_input_chars_per_word": 1000000}`, "has 600 bytes: 512 are possible"},
		"missing merge":         {"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}`, "model: "},
		"dropout":               {"model", `{"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1}`, "dropout"},
		"no unknown":            {"model", `{"type": "Unigram", "vocab": [["a", 0]]}`, "model: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(with(map[string]string{c.part: c.text}), "model/tokenizer.json")
			if err == nil || !strings.HasPrefix(err.Error(), "model/tokenizer.json: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %.300v, want %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 5000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestJunk reads files that are no tokenizers.
func TestJunk(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "null": "null", "list": "[]", "deep": strings.Repeat("[", 1<<22), "deep object": strings.Repeat(`{"a":`, 1<<20),
		"zeros": strings.Repeat("\x00", 1<<22), "string": `{"version": "` + strings.Repeat("1", 1<<22) + `"}`, "cut": string(with(nil)[:200]),
	} {
		if _, err := New([]byte(text), "tokenizer.json"); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: error %.200v", name, err)
		}
	}
}

func TestOpen(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // of the error; empty: none
	}{
		"json":             {map[string]string{"tokenizer.json": string(with(nil)), "vocab.txt": "x"}, ""},
		"vocab":            {map[string]string{"vocab.txt": smallVocab}, ""},
		"vocab, settings":  {map[string]string{"vocab.txt": smallVocab, "tokenizer_config.json": `{"do_lower_case": false}`}, ""},
		"bad settings":     {map[string]string{"vocab.txt": smallVocab, "tokenizer_config.json": `{"do_lower_case": 3}`}, "tokenizer_config.json: "},
		"two answers":      {map[string]string{"tokenizer.json": string(with(map[string]string{"normalizer": `{"type": "BertNormalizer", "lowercase": true}`})), "tokenizer_config.json": `{"do_lower_case": false}`}, "do_lower_case is false, but the normalizer of tokenizer.json has it as true"},
		"one answer":       {map[string]string{"tokenizer.json": string(with(map[string]string{"normalizer": `{"type": "BertNormalizer", "lowercase": true}`})), "tokenizer_config.json": `{"do_lower_case": true, "strip_accents": null}`}, ""},
		"cut on the left":  {map[string]string{"vocab.txt": smallVocab, "tokenizer_config.json": `{"truncation_side": "left"}`}, "tokenizer_config.json: truncation on the left is not supported"},
		"left, json":       {map[string]string{"tokenizer.json": string(with(nil)), "tokenizer_config.json": `{"truncation_side": "left"}`}, "tokenizer_config.json: truncation on the left is not supported"},
		"cut on the right": {map[string]string{"tokenizer.json": string(with(nil)), "tokenizer_config.json": `{"truncation_side": "right"}`}, ""},
		"space":            {map[string]string{"tokenizer.json": string(with(map[string]string{"pre_tokenizer": `{"type": "ByteLevel", "add_prefix_space": false}`})), "tokenizer_config.json": `{"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true}`}, "add_prefix_space is true, but the pre-tokenizer of tokenizer.json has it as false"},
		"no space":         {map[string]string{"tokenizer.json": string(with(map[string]string{"pre_tokenizer": `{"type": "ByteLevel", "add_prefix_space": false}`})), "tokenizer_config.json": `{"tokenizer_class": "RobertaTokenizer", "add_prefix_space": false}`}, ""},
		"other class":      {map[string]string{"tokenizer.json": string(with(map[string]string{"pre_tokenizer": `{"type": "ByteLevel", "add_prefix_space": false}`})), "tokenizer_config.json": `{"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": true}`}, ""},
		"long line":        {map[string]string{"vocab.txt": strings.Repeat("a", 1<<20)}, "vocab.txt: line 1 is no token"},
		"nothing":          {nil, "give a folder that holds tokenizer.json or vocab.txt"},
		"sentencepiece":    {map[string]string{"sentencepiece.bpe.model": "x"}, "save the tokenizer as tokenizer.json"},
	} {
		dir := t.TempDir()
		for name, text := range c.files {
			write(dir, name, text)
		}
		_, err := Open(dir)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "tokenizer.json"))
	must.Do(t, err)
	must.Do(t, f.Truncate(1<<36)) // a hole
	f.Close()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "more than 128 MiB are no tokenizer") {
		t.Errorf("a huge file: %v", err)
	}
}

// TestManyParts checks that reading a list stops soon after the limit.
func TestManyParts(t *testing.T) {
	many := func(begin string, size int, end string) string {
		return begin + strings.Repeat("{},", size/3) + "{}" + end
	}
	for name, c := range map[string]struct{ part, text, want string }{
		"added tokens":   {"added_tokens", many("[", maxAddedList, "]"), "added_tokens: "},
		"normalizers":    {"normalizer", many(`{"type": "Sequence", "normalizers": [`, maxPart, "]}"), "normalizer: "},
		"pre-tokenizers": {"pre_tokenizer", many(`{"type": "Sequence", "pretokenizers": [`, maxPart, "]}"), "pre_tokenizer: "},
		"processors":     {"post_processor", many(`{"type": "Sequence", "processors": [`, maxPart, "]}"), "post_processor: "},
		"template":       {"post_processor", many(`{"type": "TemplateProcessing", "single": [`, maxPart, "]}"), "post_processor: "},
	} {
		text := with(map[string]string{c.part: c.text})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(text, "tokenizer.json")
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %.300v, want %q", name, err, c.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(5*len(text)) {
			t.Errorf("%s: %d MiB for a text of %d MiB", name, taken>>20, len(text)>>20)
		}
	}
}

func TestManyAddedTokens(t *testing.T) {
	if _, err := readAddedList([]byte("[" + strings.Repeat("{},", maxAdded) + "{}]")); err == nil || !strings.Contains(err.Error(), "more than 1048576 tokens") {
		t.Errorf("error %v", err)
	}
}

// TestGrowth checks that replacements that feed each other take bounded memory.
func TestGrowth(t *testing.T) {
	double := `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("a", 32) + `"}`
	tok, err := New(with(map[string]string{"normalizer": `{"type": "Sequence", "normalizers": [` + strings.Repeat(double+",", 40) + double + `]}`}), "tokenizer.json")
	must.Do(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tok.Encode(strings.Repeat("a", 100), 10)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d MiB for 100 characters", grown>>20)
	}
}
