
variable "embedder" { default = "minilm" }              # minilm, or hashing, which needs no model and is weaker
variable "model" { default = env("RACFLOW_MODEL", "") } # a language model that answers, such as gpt-4o-mini
variable "provider" { default = "openai" }              # its service: openai or anthropic
variable "base_url" { default = "" } # its address; empty: the provider's, or OPENAI_BASE_URL
model "llm" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
}

knowledge "docs" {
  source { path = "docs" }
  chunk {
    use = "markdown"
    config { size = 200 }
  }
  enrich "path" {
    use   = "path"
    embed = false # words only: to rename a file embeds nothing
    config { parts = ["path", "title"] }
  }
  enrich "headings" {
    use = "path"
    config { parts = ["headings", "declaration"] }
  }
  enrich "contextualize" {
    use   = "context"
    model = model.llm
  }
  embed { use = var.embedder }
  store { analyzer = "english" }
}

pipeline "contextual" {
  input { path = "questions.tsv" }
  retrieve "found" { top_k = 150 }
  rerank "best" { use = "local" }
  prompt "question" {
    use   = "answer"
    model = model.llm
  }
  sample "llm" {
    model     = model.llm
    resamples = 1
    config "openai" { temperature = 0.2 }
  }
  elect "answer" {
    use     = "first"
    enabled = var.model != ""
    flag    = "answer == ''"
  }
}
