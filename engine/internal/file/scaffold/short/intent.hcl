
variable "embedder" { default = "minilm" }              # or hashing, which needs no model and is weaker
variable "model" { default = env("RACFLOW_MODEL", "") } # a language model that votes, too, such as gpt-4o-mini
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
  prompt "shots" { use = "completion" }
  sample "llm" {
    model = model.llm
    n     = 6
  }
  elect "intent" {
    use    = "learned"
    accept = "answer in labels"
    flag   = "confidence < 0.5"
  }
}
