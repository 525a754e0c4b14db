# A pipeline that cannot keep what it promises: every expectation has to fail, and
# racflow test with it.

knowledge "utterances" {
  source {
    path = "../../../../examples/intent/train.tsv"
  }
  embed {
    use = "hashing"
  }
  store {
    use = "local"
  }
}

pipeline "fails" {
  input {
    path = "../../../../examples/intent/test.tsv"
  }
  retrieve "near" {
    from = knowledge.utterances
  }
  sample "neighbours" {
    use = "neighbours"
  }
  elect "intent" {
    use  = "soft"
    flag = "agreement < 0.5"
  }

  expect "accuracy" {
    rule = "accuracy >= 0.95"
  }

  expect "label" {
    rule = "recall('no_such_label') >= 0"
  }

  expect "leak" {
    rule = "leaked == 0"
    input {
      path = "../../../../examples/intent/train.tsv"
    }
  }

  expect "found" {
    rule = "found('where is my parcel?', 'no-such-row', 60)"
  }
}
