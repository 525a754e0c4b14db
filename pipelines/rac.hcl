# Sort texts among many labels with a language model that chooses between few:
# RAC, retrieval-augmented classification. The labels of a text's neighbours are
# the only ones allowed, the nearest neighbours are shown as answered questions,
# and the model answers with a JSON object that has the label. An answer outside
# those labels is rejected and asked for again; up to two times.
# methods.md lists what is as in the article that described the method, and what is not.
#
#   racflow run -var model=gpt-4o-mini pipelines/rac.hcl
#   racflow run -var model=... -var train=my/labelled.tsv --input my/texts.tsv pipelines/rac.hcl
#   racflow plan -var model=... pipelines/rac.hcl    # what it would ask, and cost
#
# As in the article, the model may rank the labels, of which the first that is allowed is
# the answer, or answer that none fits, by an empty list: -var answer=list. What the article
# measured with: 50 neighbours, of which 10 are shown, temperature 0:
#
#   racflow run -var model=... -var answer=list -var neighbours=50 -var shots=10 -var temperature=0 pipelines/rac.hcl
#
# Its classes stand in levels. With labels such as Agent/Person/Athlete, -var levels=/ asks for one level after the
# other, and racflow eval says how many answers are right down to each level.

variable "train" { # labelled examples: rows with the columns text and label
  type    = path
  default = "../examples/intent/train.tsv"
}
variable "embedder" { default = "minilm" } # or hashing, which needs no model and is weaker
variable "store" { default = "local" }     # or milvus, at MILVUS_ADDRESS
variable "neighbours" { default = 30 }     # how many provide the allowed labels
variable "shots" { default = 5 }           # how many of them are shown as answered questions
variable "answer" { default = "label" }    # or list: labels, the likeliest first
variable "reasoning" { default = false }   # the model writes its reasons before the label
variable "levels" { default = "" }         # what stands between the levels of a label, such as /
variable "temperature" { default = 0.3 }   # at 0 an answer that was rejected is likely to come again

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

knowledge "utterances" {
  source {
    path   = var.train
    levels = var.levels
  }
  embed { use = var.embedder }
  store { use = var.store }
}

pipeline "rac" {
  input { path = "../examples/intent/test.tsv" }
  retrieve "neighbours" {
    top_k = var.neighbours
    fallback "lexical" {
      when = "failed"
      mode = "lexical"
    }
  }

  # The allowed labels, the likeliest first; then the nearest neighbours. With
  # -set question.none=none the model may say that no label fits.
  prompt "question" {
    use = "chat"
    config {
      shots     = var.shots
      answer    = var.answer
      reasoning = var.reasoning
      levels    = var.levels != ""
    }
  }
  sample "llm" {
    model     = model.llm
    resamples = 2
    accept    = "answer in candidate_labels"
    config "openai" { temperature = var.temperature }
  }

  # The first acceptable answer. A person should look at items without one.
  elect "rac" {
    use  = "first"
    flag = "answer == ''"
  }

  # What holds with the example's data, whatever the model. Nobody is asked:
  # racflow test -var model=none pipelines/rac.hcl
  expect "no-leak" { rule = "leaked == 0" }
  expect "neighbours" {
    description = "A row with the right label is among those that are shown."
    rule        = "found('how do i get out of this monthly plan', 'Please do not renew my plan when it runs out.', 20)"
  }
}
