package transformer

// names are a family's names of tensors, without .weight and .bias. An empty one is of
// what the family does not have.
type names struct {
	words, positions, segments string
	embedded                   string // the norm of the embeddings
	layer                      string // of a layer, by its number; the next ones follow it
	query, key, value          string
	attended                   string
	afterAttention             string
	wide, narrow               string
	afterFeedForward           string
	relative                   string // MPNet's biases of relative positions

	// ModernBERT: matrices that hold several, and the norms before the sublayers.
	queryKeyValue, wideAndGate         string
	beforeAttention, beforeFeedForward string
	final                              string
}

var bertNames = names{
	words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings",
	segments: "embeddings.token_type_embeddings", embedded: "embeddings.LayerNorm",
	layer: "encoder.layer.%d.",
	query: "attention.self.query", key: "attention.self.key", value: "attention.self.value",
	attended: "attention.output.dense", afterAttention: "attention.output.LayerNorm",
	wide: "intermediate.dense", narrow: "output.dense", afterFeedForward: "output.LayerNorm",
}

var familyNames = map[Family]names{
	BERT: bertNames, RoBERTa: bertNames, XLMRoBERTa: bertNames,
	DistilBERT: {
		words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings", embedded: "embeddings.LayerNorm",
		layer: "transformer.layer.%d.",
		query: "attention.q_lin", key: "attention.k_lin", value: "attention.v_lin",
		attended: "attention.out_lin", afterAttention: "sa_layer_norm",
		wide: "ffn.lin1", narrow: "ffn.lin2", afterFeedForward: "output_layer_norm",
	},
	MPNet: {
		words: "embeddings.word_embeddings", positions: "embeddings.position_embeddings", embedded: "embeddings.LayerNorm",
		layer: "encoder.layer.%d.",
		query: "attention.attn.q", key: "attention.attn.k", value: "attention.attn.v",
		attended: "attention.attn.o", afterAttention: "attention.LayerNorm",
		wide: "intermediate.dense", narrow: "output.dense", afterFeedForward: "output.LayerNorm",
		relative: "encoder.relative_attention_bias",
	},
	ModernBERT: {
		words: "embeddings.tok_embeddings", embedded: "embeddings.norm",
		layer:         "layers.%d.",
		queryKeyValue: "attn.Wqkv", attended: "attn.Wo", wideAndGate: "mlp.Wi", narrow: "mlp.Wo",
		beforeAttention: "attn_norm", beforeFeedForward: "mlp_norm", final: "final_norm",
	},
}
