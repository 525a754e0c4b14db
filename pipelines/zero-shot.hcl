# Sort texts with a language model that sees the labels and nothing else: the
# baseline for the methods with retrieval.
#
#   racflow run  -var model=gpt-4o-mini pipelines/zero-shot.hcl
#   racflow eval -var model=... -var train=my/labelled.tsv --input my/held-out.tsv pipelines/zero-shot.hcl

variable "train" { # where the labels are taken from: one row for each will do
  type    = path
  default = "../examples/intent/train.tsv"
}
variable "reasoning" { default = false } # the model writes its reasons before the label

# The language model, which is needed. provider is openai, anthropic or a plugin's stage
# (mine/mine), price that of a million tokens: { input = 0.15, output = 0.6 }.
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

knowledge "labels" {
  source { path = var.train }
  embed { use = "hashing" } # nothing is searched by it
}

pipeline "zero-shot" {
  input { path = "../examples/intent/test.tsv" }

  # The labels come from here; the candidates are dropped.
  retrieve "labels" {
    mode  = "lexical"
    top_k = 1
    keep  = "false"
  }

  # All labels, sorted: the beginning is the same for every text, and a server with a prefix
  # cache reads it once. With -set question.none=none the model may say that none fits.
  prompt "question" {
    use = "chat"
    config {
      shots     = 0
      labels    = "all"
      reasoning = var.reasoning
    }
  }
  sample "llm" {
    model     = model.llm
    resamples = 2
    accept    = "answer in labels"
    config "openai" { temperature = 0.3 }
  }
  elect "answer" {
    use  = "first"
    flag = "answer == ''"
  }

  # What holds with the example's data, whatever the model. Nobody is asked:
  # racflow test -var model=none pipelines/zero-shot.hcl
  expect "no-leak" { rule = "leaked == 0" }
}
