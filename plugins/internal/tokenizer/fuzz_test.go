package tokenizer

import "testing"

// FuzzTokenizer reads arbitrary files, and encodes texts if a file is a tokenizer.
func FuzzTokenizer(f *testing.F) {
	const text = "AB new a\u0301 [CLS]漢 \xff 12"
	f.Add(string(with(nil)), text, "b")
	for _, parts := range []map[string]string{
		{
			"model":         `{"type": "BPE", "vocab": {"a": 0, "[CLS]": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]], "unk_token": "a"}`,
			"pre_tokenizer": `{"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "ByteLevel", "add_prefix_space": true}]}`,
			"normalizer":    `{"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Prepend", "prepend": "_"}]}`,
		}, {
			"model":         `{"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["[CLS]", -1.5], ["▁a", -2], ["b", -3]]}`,
			"pre_tokenizer": `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}`,
			"normalizer":    `{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}`,
		}, {
			"pre_tokenizer":  `{"type": "Split", "pattern": {"Regex": "[a-b]+|\\s+(?!\\S)|\\s+"}, "behavior": "MergedWithPrevious", "invert": false}`,
			"normalizer":     `{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true}`,
			"post_processor": `{"type": "RobertaProcessing", "sep": ["[CLS]", 1], "cls": ["[CLS]", 1]}`,
		},
	} {
		f.Add(string(with(parts)), text, "a b")
	}
	f.Fuzz(func(t *testing.T, file, a, b string) {
		tok, err := New([]byte(file), "tokenizer.json")
		if err != nil {
			return
		}
		check := func(ids []int32, specials int) {
			t.Helper()
			const limit = 16
			if len(ids) > max(limit, specials) {
				t.Errorf("%d ids of %d", len(ids), limit)
			}
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("id %d of %d", id, tok.Size())
				}
			}
		}
		check(tok.Encode(a, 16), added(tok.template.single))
		ids, second := tok.EncodePair(a, b, 16)
		check(ids, added(tok.template.pair))
		if second < 0 || second > len(ids) {
			t.Errorf("the second segment begins at %d of %d", second, len(ids))
		}
		last := -1
		tok.Each(a, func(at int) {
			if at <= last || at >= len(a) {
				t.Errorf("%q: a token at byte %d after one at %d", a, at, last)
			}
			last = at
		})
	})
}
