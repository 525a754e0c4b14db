# Sort utterances into intents: retrieve labelled neighbours, let several voters vote, elect. It
# follows RAGE, retrieval-augmented generation and election; rage.hcl is that method as published.
#
#   racflow run pipelines/intent.hcl
#   racflow run -var train=my/labelled.tsv --input my/texts.tsv pipelines/intent.hcl
#   racflow run -var model=gpt-4o-mini -set model.llm.batch=true pipelines/intent.hcl # -set needs no variable
#   racflow tune -var model=... --input my/held-out.tsv pipelines/intent.hcl

variable "train" { # labelled examples: a file of rows
  type    = path
  default = "../examples/intent/train.tsv"
}
variable "embedder" { default = "minilm" } # or hashing, which needs no model and is weaker; or encoder
variable "encoder" {                       # the encoder's model: a name of racflow model list, or a folder
  type    = path
  default = "bge-small-en-v1.5"
}
variable "store" { default = "local" } # or milvus, at MILVUS_ADDRESS

# A language model that votes, too; empty: none. provider is openai, anthropic or a plugin's
# stage (mine/mine), price that of a million tokens: { input = 0.15, output = 0.6 }.
variable "model" { default = env("RACFLOW_MODEL", "") }
variable "provider" { default = "openai" }
variable "base_url" { default = "" } # empty: OPENAI_BASE_URL, or the provider's own
variable "price" { default = {} }

# racflow tune finds values of these. margin_below: items on which the voters agree by less
# are sent to the model; 2: all. Answers with less confidence than flag_below are flagged.
variable "margin_below" { default = 2 }
variable "flag_below" { default = 0.5 }
variable "election" { default = "learned" } # or soft, majority
variable "weights" { default = {} }         # how much each voter counts
variable "calibration" { default = {} }     # slopes and offsets of the confidence
variable "unknown" { default = {} }         # what tells texts that belong to no label

model "llm" {
  name     = var.model
  provider = var.provider
  base_url = var.base_url
  price    = var.price
}

knowledge "utterances" {
  source { path = var.train }
  embed {
    use = var.embedder
    config "encoder" { model = var.encoder }
  }
  store { use = var.store }
}

pipeline "intent" {
  input { path = "../examples/intent/test.tsv" }
  retrieve "neighbours" { # the 60 nearest, by meaning and by words
    fallback "lexical" {
      when = "failed"
      mode = "lexical"
    }
  }
  sample "neighbours" { use = "neighbours" } # the nearest vote for their labels,
  sample "prototype" { use = "prototype" }   # the nearest label centroids for theirs,
  sample "linear" { use = "linear" }         # and a support vector machine for its own
  prompt "shots" {                           # a chat: the labels of the neighbours, the nearest as answered questions
    use = "chat"
    config {
      shots     = 10
      reasoning = false
    }
  }
  sample "llm" {
    model = model.llm
    when  = "margin < var.margin_below"
    config "openai" { # one answer, and what else it might have been
      logprobs    = true
      temperature = 0
    }
  }
  elect "intent" {
    use    = var.election
    accept = "answer in labels"
    flag   = "confidence < var.flag_below"
    config "learned" {
      weights     = var.weights
      calibration = var.calibration
      unknown     = var.unknown
    }
    config "soft" { weights = var.weights }
    config "majority" { weights = var.weights }
  }
  expect "accuracy" {
    rule = var.embedder == "hashing" ? "accuracy >= 0.45 and low(accuracy) >= 0.4" : "accuracy >= 0.73 and low(accuracy) >= 0.67"
  }
  expect "answered" {
    rule    = "answered(0.8) >= 0.6"
    enabled = var.embedder != "hashing"
  }
  expect "cancel" { rule = "answer('how do i get out of this monthly plan') == 'subscription_cancel'" }
  expect "no-leak" { rule = "leaked == 0 and failed == 0" }
}
