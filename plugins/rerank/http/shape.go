package http

// shape is the form of one service's requests and replies.
type shape struct {
	address string // of the service itself; empty: there is none, people run it
	model   bool   // the request names a model
	most    int    // documents per request
	fields  func(query string, documents []string) map[string]any
	reply   func() reply
}

// reply is what a service answers.
type reply interface{ scores() []scored }

// scored is the score of one document. A service writes null for what is not a
// number.
type scored struct {
	Index     *int     `json:"index"`
	Relevance *float64 `json:"relevance_score"`
	Score     *float64 `json:"score"`
}

func (s scored) value() *float64 {
	if s.Relevance != nil {
		return s.Relevance
	}
	return s.Score
}

// results is the reply of Cohere, Jina, vLLM and llama.cpp.
type results struct {
	Results []scored `json:"results"`
}

func (r *results) scores() []scored { return r.Results }

// data is the reply of Voyage.
type data struct {
	Data []scored `json:"data"`
}

func (r *data) scores() []scored { return r.Data }

// list is the reply of TEI.
type list []scored

func (r *list) scores() []scored { return *r }

// Cohere and Voyage recommend or allow 1,000 documents per request; TEI takes 32
// where it was not started with another --max-client-batch-size.
const (
	mostDocuments = 1000
	teiDocuments  = 32
)

var shapes = map[string]shape{
	"cohere": {
		address: "https://api.cohere.com/v2", model: true, most: mostDocuments, fields: topN,
		reply: func() reply { return &results{} },
	},
	"jina": {
		address: "https://api.jina.ai/v1", model: true, most: mostDocuments, reply: func() reply { return &results{} },
		fields: func(query string, documents []string) map[string]any {
			fields := topN(query, documents)
			fields["return_documents"] = false
			return fields
		},
	},
	"voyage": {
		address: "https://api.voyageai.com/v1", model: true, most: mostDocuments, reply: func() reply { return &data{} },
		fields: func(query string, documents []string) map[string]any {
			return map[string]any{"query": query, "documents": documents, "top_k": len(documents), "return_documents": false, "truncation": true}
		},
	},
	"tei": {
		most: teiDocuments, reply: func() reply { return &list{} },
		fields: func(query string, documents []string) map[string]any {
			return map[string]any{"query": query, "texts": documents, "truncate": true, "return_text": false}
		},
	},
	"vllm":     {model: true, most: mostDocuments, fields: topN, reply: func() reply { return &results{} }},
	"llamacpp": {most: mostDocuments, fields: topN, reply: func() reply { return &results{} }},
}

// topN asks for the scores of all documents.
func topN(query string, documents []string) map[string]any {
	return map[string]any{"query": query, "documents": documents, "top_n": len(documents)}
}

// reserved are the fields of a request that the body argument must not set.
var reserved = []string{"model", "query", "documents", "texts", "top_n", "top_k"}

// body is a request in this form.
func (s shape) body(model, query string, documents []string) map[string]any {
	fields := s.fields(query, documents)
	if model != "" {
		fields["model"] = model
	}
	return fields
}
