
variable "embedder" { default = "minilm" }              # minilm, or hashing, which needs no model and is weaker
variable "model" { default = env("RACFLOW_MODEL", "") } # a language model that votes, too, such as gpt-4o-mini
variable "flag_below" { default = 0.5 }                 # answers with less confidence are flagged; racflow tune finds it
model "llm" { name = var.model }

knowledge "utterances" {
  source { path = "train.tsv" }
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
    config { logprobs = true }
  }
  elect "intent" {
    accept = "answer in labels"
    flag   = "confidence < var.flag_below"
  }
}
