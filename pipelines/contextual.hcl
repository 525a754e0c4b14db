# Find the passages of your own documents that answer a question, and have a language model
# answer from them: contextual retrieval. Chunks of documents are embedded and searched together
# with their context in the document, and reranked. Without a model the passages are the result.
#
#   racflow ask pipelines/contextual.hcl "how long does the gateway wait when it is shut down?"
#   racflow ask -var docs=my/folder -var model=gpt-4o-mini pipelines/contextual.hcl "..."
#   racflow plan -var docs=my/folder -var model=... pipelines/contextual.hcl    # what would be asked, and cost

variable "docs" { # a folder, a glob such as docs/**/*.md, or one file
  type    = path
  default = "../examples/docs/quern"
}
variable "exclude" { default = [] }         # patterns of files that are no documents: ["archive/**"]
variable "chunker" { default = "markdown" } # HTML and PDF, too; or code, recursive, sentences
variable "analyzer" { default = "english" } # or german, french, ...; code; ngram without spaces; standard
variable "embedder" { default = "minilm" }  # or hashing, which needs no model and is weaker; encoder; openai
variable "encoder" {                        # the encoder's model: a name of racflow model list, or a folder
  type    = path
  default = "bge-small-en-v1.5"
}
variable "store" { default = "local" }    # or milvus, at MILVUS_ADDRESS
variable "reranker" { default = "local" } # or cross_encoder, a model on this machine; http, a service

# A language model that answers; empty: none. provider is openai, anthropic or a plugin's stage
# (mine/mine), price that of a million tokens: { input = 0.15, output = 0.6 }.
variable "model" { default = env("RACFLOW_MODEL", "") }
variable "provider" { default = "openai" }
variable "base_url" { default = "" } # empty: OPENAI_BASE_URL, or the provider's own
variable "price" { default = {} }
variable "contextualize" { default = true } # whether the model writes the context of each chunk, by a call
variable "whole" { default = 0 }            # it sees all documents where they have fewer tokens than this

model "llm" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
  price    = var.price
}

knowledge "docs" {
  source {
    path    = var.docs
    exclude = var.exclude
  }
  chunk {
    use = var.chunker
    config { size = 200 }
  }
  enrich "path" { # searched by words alone, so that to rename a file embeds nothing; code is found better with both
    use   = "path"
    embed = var.chunker == "code"
    config { parts = ["path", "title"] }
  }
  enrich "headings" {
    use = "path"
    config { parts = ["headings", "declaration"] }
  }
  enrich "contextualize" { # its context by the model: the document first, for a prompt cache
    use     = "context"
    enabled = var.contextualize && contains(["openai", "anthropic"], var.provider)
    model   = model.llm
  }
  embed {
    use = var.embedder
    config "encoder" { model = var.encoder }
    config "openai" {
      model    = "text-embedding-3-small"
      base_url = var.provider == "openai" && var.base_url != "" ? var.base_url : "https://api.openai.com/v1"
      api_key  = secret("OPENAI_API_KEY", "")
    }
  }
  store {
    use      = var.store
    analyzer = var.analyzer
  }
}

pipeline "contextual" {
  input { path = "../examples/docs/questions.tsv" }
  retrieve "found" {
    top_k = 150
    whole = "var.model != '' and knowledge.tokens < var.whole"
    fallback "words" {
      when = "failed"
      mode = "lexical"
    }
  }
  rerank "best" { # the best 20 of them
    use = var.reranker
    config "cross_encoder" { model = "ms-marco-MiniLM-L6-v2" }
    config "http" {
      api     = "jina" # or cohere, voyage, tei, vllm, llamacpp, with a base_url: -set best.api=tei -set best.base_url=...
      model   = "jina-reranker-v2-base-multilingual"
      api_key = secret("RERANK_API_KEY", "")
    }
  }
  prompt "question" { # numbered passages, the question last
    use   = "answer"
    model = model.llm
  }
  sample "llm" {
    model     = model.llm
    resamples = 1 # if it cites no passage that it was given
    config "openai" { temperature = 0.2 }
  }
  elect "answer" {
    use     = "first"
    enabled = var.model != ""
    flag    = "answer == ''"
  }
  expect "recall" {
    rule = var.embedder == "hashing" ? "recall_at(20) >= 0.75 and ndcg >= 0.55" : "recall_at(20) >= 0.87 and ndcg >= 0.65"
  }
  expect "shutdown" { rule = "found('How long does the gateway wait when it is shut down?', 'reference/gateway.md', 5)" }
}
