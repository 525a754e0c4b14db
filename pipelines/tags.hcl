# Give each text one or more tags: the voters vote on each tag, and the election learns how likely a
# tag has to be.
#
#   racflow run pipelines/tags.hcl
#   racflow eval pipelines/tags.hcl
#   racflow run -var train=my/tagged.tsv --input my/texts.tsv pipelines/tags.hcl

variable "train" { # tagged examples: a file of rows
  type    = path
  default = "../examples/tags/train.tsv"
}
variable "embedder" { default = "minilm" } # or hashing, which needs no model and is weaker

knowledge "texts" {
  source {
    path   = var.train
    label  = "tags" # such as billing;urgent
    labels = "many"
  }
  embed { use = var.embedder }
}

pipeline "tags" {
  input {
    path  = "../examples/tags/test.tsv"
    label = "tags"
  }
  retrieve "neighbours" {}                   # the 60 nearest, by meaning and by words
  sample "neighbours" { use = "neighbours" } # the nearest vote for their tags,
  sample "prototype" { use = "prototype" }   # the tags' centroids for theirs,
  sample "linear" { use = "linear" }         # and a support vector machine of each tag for its own
  elect "tags" { use = "learned" }
  expect "f1" {
    rule = var.embedder == "hashing" ? "f1 >= 0.6 and low(f1) >= 0.55" : "f1 >= 0.72 and low(f1) >= 0.68"
  }
  expect "deposit" { rule = "answer('I hired a bike and want the deposit back') == 'refund; rental'" }
  expect "no-leak" { rule = "leaked == 0 and failed == 0" }
}
