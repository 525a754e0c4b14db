
variable "embedder" { default = "minilm" }              # minilm, or hashing, which needs no model and is weaker
variable "model" { default = env("RACFLOW_MODEL", "") } # a language model that votes, too, such as gpt-4o-mini
variable "provider" { default = "openai" } # its service: openai, anthropic, a decision model (systemone, decisions), or a plugin's stage
variable "base_url" { default = "" } # its address; empty: the provider's, or OPENAI_BASE_URL
variable "flag_below" { default = 0.5 }                 # answers with less confidence are flagged; racflow tune finds it
model "llm" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
}

knowledge "utterances" {
  source { path = "train.tsv" }
  source { # decisions of racflow review: examples, too; the file need not be there yet
    path     = "reviewed.jsonl"
    reviewed = true
  }
  embed { use = var.embedder }
  store { analyzer = "standard" }
}

pipeline "intent" {
  input { path = "test.tsv" }
  retrieve "neighbours" {}
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  sample "linear" { use = "linear" }
  prompt "shots" {
    use = "chat"
    config {
      shots     = 10
      reasoning = false
    }
  }
  sample "llm" {
    model = model.llm
    config "openai" { logprobs = true }
  }
  elect "intent" {
    accept = "answer in labels"
    flag   = "confidence < var.flag_below"
  }
}
