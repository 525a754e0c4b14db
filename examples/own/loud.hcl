# The voter of this example, beside racflow's own.
knowledge "utterances" {
  source { path = "../intent/train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "intent" {
  input { path = "../intent/test.tsv" }
  retrieve "near" { from = knowledge.utterances }
  sample "neighbours" { use = "neighbours" }
  sample "loud" {
    use = "loud"
    config { label = "complaint_staff" }
  }
  elect "intent" { use = "soft" }
}
