# Two people have labelled some of the messages by hand. Their answers vote
# beside the neighbours; where they leave one out, there is one vote less.
#
#   racflow run examples/recorded/vote.hcl

variable "answers" {
  description = "Recorded answers: TSV with id, voter and answer, or the JSONL results of a run."
  type        = path
  default     = "answers.tsv"
}

variable "embedder" {
  description = "minilm, or hashing where the model cannot be had (weaker)."
  default     = "minilm"
}

knowledge "utterances" {
  source { path = "../intent/train.tsv" }
  embed { use = var.embedder }
  store { use = "local" }
}

pipeline "vote" {
  input { path = "../intent/test.tsv" }

  retrieve "near" { from = knowledge.utterances }

  sample "neighbours" { use = "neighbours" }

  sample "ann" {
    use = "recorded"
    config { path = var.answers }
  }

  sample "bo" {
    use = "recorded"

    config {
      path = var.answers
      none = "none of these"
    }
  }

  elect "intent" {
    use    = "majority"
    accept = "answer in labels"
    flag   = "agreement < 0.6"
  }
}
