# A voter in Python beside a built-in one.
knowledge "utterances" {
  source { path = "../intent/train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "intent" {
  input { path = "../intent/test.tsv" }
  retrieve "near" { from = knowledge.utterances }
  sample "neighbours" { use = "neighbours" }
  sample "length" {
    use = "length/bylength"
    config {
      long_label  = "complaint_staff"
      short_label = "order_status"
    }
  }
  elect "intent" {
    use = "soft"
    config {
      weights = { length = 0.05 } # it knows little
    }
  }
}
