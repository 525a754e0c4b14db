# Find passages by the questions that people ask, not only by their own words: chunk
# enrichment. A language model names keywords for each chunk of the documents, and
# questions that it answers. They follow the chunk after a delimiter, are embedded and
# searched with it, and are removed again before anybody sees its text.
#
#   racflow run -var model=gpt-4o-mini pipelines/keywords.hcl
#   racflow ask -var docs=my/folder -var model=... pipelines/keywords.hcl "..."
#   racflow plan -var docs=my/folder -var model=... pipelines/keywords.hcl    # what would be asked, and cost
#   racflow eval -var model=... --ablate enrich,lexical pipelines/keywords.hcl
#
# Without a model it searches the chunks as they are. contextual.hcl
# contextualizes chunks and answers questions; both can be done in one file.

variable "docs" { # a folder, a glob such as docs/**/*.md, or one file; or rows with the column text
  type    = path
  default = "../examples/docs/quern"
}
variable "chunker" { default = "markdown" } # HTML and PDF, too; or code, recursive, sentences
variable "analyzer" { default = "english" } # or german, french, ...; code; ngram without spaces; standard
variable "embedder" { default = "minilm" }  # or hashing, which needs no model and is weaker
variable "store" { default = "local" }      # or milvus, at MILVUS_ADDRESS

# A language model that writes keywords and questions; empty: none. provider is openai or
# anthropic, price that of a million tokens: { input = 0.15, output = 0.6 }.
variable "model" { default = env("RACFLOW_MODEL", "") }
variable "provider" { default = "openai" }
variable "base_url" { default = "" } # empty: OPENAI_BASE_URL, or the provider's own
variable "price" { default = {} }

model "llm" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
  price    = var.price
}

knowledge "docs" {
  source { path = var.docs }
  chunk {
    use = var.chunker
    config { size = 200 }
  }

  # How many of them, and how many chunks share a request: -set questions.n=5 -set questions.pack=4.
  enrich "keywords" {
    use   = "keywords"
    model = model.llm
  }
  enrich "questions" {
    use   = "questions"
    model = model.llm
  }
  embed { use = var.embedder }
  store {
    use      = var.store
    analyzer = var.analyzer
  }
}

pipeline "keywords" {
  input { path = "../examples/docs/questions.tsv" }

  # The 20 nearest by 0.7 * cosine + 0.3 * BM25 (as a share of the best). They
  # show the chunk's own text.
  retrieve "found" {
    top_k = 20
    fallback "words" {
      when = "failed"
      mode = "lexical"
    }
  }

  # What holds with the example's data, by either embedder: racflow test pipelines/keywords.hcl
  expect "recall" {
    rule = var.embedder == "hashing" ? "recall_at(20) >= 0.75 and ndcg >= 0.5" : "recall_at(20) >= 0.88 and ndcg >= 0.57"
  }
}
