# A third party's voter beside a built-in one.
knowledge "utterances" {
  source { path = "../intent/train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "intent" {
  input { path = "../intent/test.tsv" }
  retrieve "near" { from = knowledge.utterances }
  sample "neighbours" { use = "neighbours" }
  sample "words" {
    use = "keywords/words"
    config {
      labels = { refund = "refund_status", parcel = "delivery_late" }
    }
  }
  elect "intent" { use = "soft" }
}
